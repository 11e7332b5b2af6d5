import { extensionMethod, type ServedExtension } from "../../environment/extension.js";
import { NoParams, READY_URN, type ReadyStatus } from "../../protocol/computer.js";
import type { Computer } from "../computer.js";

/** computer-ready/v1: real checks at every call, without input. */
export function readyExtension(computer: Computer): ServedExtension {
  return {
    uri: READY_URN,
    description: "Checks whether the computer can be used now. It sends no input.",
    methods: [
      extensionMethod({
        name: "status",
        op: "status",
        method: "GET",
        request: NoParams,
        handle: async (): Promise<ReadyStatus> => {
          const checks = await computer.ready.run();
          return { ready: checks.every((check) => check.ok), checks };
        },
      }),
    ],
  };
}
