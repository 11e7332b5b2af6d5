/** `node forwarding-server.js PROGRAM…`: serves what forwards the program, one session for all callers; prints its port. */
import { ForwardingEnv } from "../fakes/forwarding-env.js";

const [program = "", ...args] = process.argv.slice(2);
const serving = await new ForwardingEnv({ command: [program, ...args], shared: true }).serve({ maxSessions: 1_000 });
console.log(serving.port);
// So that what is measured is what is kept, and not what wasn't collected yet.
process.on("SIGUSR2", () => (globalThis as { gc?: () => void }).gc?.());
process.once("SIGTERM", () => void serving.close().then(() => process.exit(0)));
