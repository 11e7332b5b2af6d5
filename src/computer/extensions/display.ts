import { Caller } from "../../environment/caller.js";
import { type ExtensionMethod, extensionMethod, type ServedExtension } from "../../environment/extension.js";
import { AgentEnvError } from "../../errors.js";
import { DISPLAY_URN, type Display, type DisplayAnswer, NoParams, SetDisplayRequest } from "../../protocol/computer.js";
import type { Computer } from "../computer.js";
import type { SetsDisplay } from "../operations.js";

/** The framework's own place in the input queue. */
const FRAMEWORK = new Caller(undefined);

/** computer-display/v1; `set` only where the driver can. */
export function displayExtension(computer: Computer): ServedExtension {
  const { setsDisplay } = computer.groups;
  return {
    uri: DISPLAY_URN,
    description: "Tells the display's resolution and scale, and changes them where the computer can.",
    params: () => ({ modes: computer.driver.displayModes }),
    methods: [
      extensionMethod({
        name: "get",
        op: "get",
        method: "GET",
        request: NoParams,
        handle: async (_params, { signal }) => described(computer, await computer.display(signal)),
      }),
      ...(setsDisplay === undefined ? [] : [setMethod(computer, setsDisplay)]),
    ],
  };
}

function setMethod(computer: Computer, setsDisplay: SetsDisplay): ExtensionMethod {
  return extensionMethod({
    name: "set",
    op: "set",
    method: "POST",
    request: SetDisplayRequest,
    handle: async ({ width, height, scale }, { signal }) => {
      const modes = computer.driver.displayModes;
      if (!modes.some((mode) => mode[0] === width && mode[1] === height)) {
        throw new AgentEnvError("invalid_argument", `${width}x${height} is no mode of this display`, {
          hint: `it has ${modes.map((mode) => mode.join("x")).join(", ")}`,
        });
      }
      if (typeof scale === "number" && !(scale > 0)) {
        throw new AgentEnvError("invalid_argument", `scale is above 0, not ${scale}`);
      }
      // Input is not to be sent while what it points at moves.
      const waitMs = computer.settings.queue_wait_s * 1000;
      const display = await computer.queue.turn(FRAMEWORK, signal, waitMs, async () => {
        const now = await computer.display(signal);
        return computer.change("setting the display", signal, (own) =>
          setsDisplay.setDisplay({ width, height, scale: scale ?? now.scale }, own),
        );
      });
      return described(computer, display);
    },
  });
}

function described({ driver }: Computer, { width, height, scale }: Display): DisplayAnswer {
  return { width, height, scale, modes: driver.displayModes.map(([w, h]) => [w, h]) };
}
