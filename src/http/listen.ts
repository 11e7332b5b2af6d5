import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { SetupError } from "../errors.js";

/** Listens and answers the port, which `port` 0 leaves to the system. A port that can't be had is a SetupError. */
export async function listen(app: FastifyInstance, host: string, port: number): Promise<number> {
  try {
    await app.listen({ host, port });
  } catch (thrown) {
    throw listenRefusal(host, port, thrown);
  }
  return (app.server.address() as AddressInfo).port;
}

/** Why an address can't be listened on, as a SetupError with what to do; anything else as it was thrown. */
export function listenRefusal(host: string, port: number, thrown: unknown): unknown {
  const { code } = thrown as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") {
    return new SetupError(`port ${port} of ${host} is taken by another program`, {
      hint: "stop that program, or choose another port with --port N (0 takes any free one)",
      cause: thrown,
    });
  }
  if (code === "EACCES" || code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
    return new SetupError(`${host}:${port} can't be listened on (${code})`, {
      hint: "choose an address of this machine with --host, and a port above 1023 with --port",
      cause: thrown,
    });
  }
  return thrown;
}
