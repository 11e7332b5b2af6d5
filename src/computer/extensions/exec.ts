import { extensionMethod, type ServedExtension } from "../../environment/extension.js";
import { EXEC_URN, ExecRequest, MAX_EXEC_TIMEOUT_S } from "../../protocol/computer.js";
import type { Computer } from "../computer.js";
import type { Commands } from "../exec.js";

/** computer-exec/v1: commands in the desktop session, for the framework and never for agents. */
export function execExtension(computer: Computer, commands: Commands): ServedExtension {
  return {
    uri: EXEC_URN,
    description:
      "Runs a command in the desktop session, as the session user and in its home. The same request_id again answers the " +
      "same run.",
    params: () => ({ max_output_bytes: computer.settings.exec_output_bytes, max_timeout_s: MAX_EXEC_TIMEOUT_S }),
    methods: [
      extensionMethod({
        name: "run",
        op: "run",
        method: "POST",
        request: ExecRequest,
        // A caller that goes away leaves the command running: it may ask again.
        handle: (params) => commands.run(params),
      }),
    ],
  };
}
