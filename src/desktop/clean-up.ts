/**
 * Removes what a computer left whose guardian could not: `node clean-up.js RUNTIME_FOLDER`. It runs as the session user once
 * no process of the computer is left, so whatever a program of the computer put in the way of its removal, it leads to
 * nothing that the program could not have removed itself.
 */
import { namedPaths, removeRemains } from "./remains.js";

const runtimeDir = process.argv[2] ?? "";
// A terminal that was closed can't be written to any more.
process.stderr.on("error", () => {});
process.stderr.write("agentenv: the guardian of the computer was killed or did not stop it; all of it was killed\n");
await removeRemains(runtimeDir, namedPaths(runtimeDir));
