/** `node forwarding-server.js PROGRAM…`: serves what forwards the program, one session for all callers; prints its port. */
import { ForwardingEnv } from "../fakes/forwarding-env.js";

const [program = "", ...args] = process.argv.slice(2);
const serving = await new ForwardingEnv({ command: [program, ...args], shared: true }).serve({ maxSessions: 1_000 });
console.log(serving.port);
process.once("SIGTERM", () => void serving.close().then(() => process.exit(0)));
