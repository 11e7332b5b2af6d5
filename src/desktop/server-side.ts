import { closeSync, readlinkSync } from "node:fs";
import { SERVER_PROC_FD, type ServerHandoff, type ToGuardian, type ToServer } from "./handoff.js";

const HANDOFF_MS = 10_000;

/** Whoever cleans up behind the server when it can't do so itself. */
export interface Guard {
  /** The path is removed when the server is gone, whatever ended it. */
  removes(path: string): void;
}

/** What a server that `enterSession` started works with. */
export interface ServerSide extends ServerHandoff {
  /** This process's pid as the machine outside the computer's namespace sees it. */
  readonly hostPid: number;
  readonly guard: Guard;
  /** The computer can be used: from now on a stop that is asked for is a success. */
  ready(): void;
  /** Aborted once the server is to stop: it was told to, or the guardian is gone. It has 1.5 s, then it is killed. */
  readonly stopping: AbortSignal;
}

/** Receives what the guardian hands over. Called once, before anything of the session is started. */
export async function serverSide(): Promise<ServerSide> {
  if (process.send === undefined) throw new Error("the server is started by its guardian, not by hand");
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.on("SIGTERM", stop);
  process.once("disconnect", stop);
  const { handoff } = await new Promise<ToServer>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("the guardian handed nothing over")), HANDOFF_MS);
    process.once("message", (message: ToServer) => {
      clearTimeout(late);
      resolve(message);
    });
  });
  // The pipe alone must not keep a server alive that has closed everything else.
  process.channel?.unref();
  const tell = (message: ToGuardian) => {
    process.send?.(message, undefined, undefined, () => {
      // A guardian that is gone is told by `stopping`.
    });
  };
  return {
    ...handoff,
    hostPid: readHostPid(),
    guard: { removes: (path) => tell({ type: "removes", path }) },
    ready: () => tell({ type: "ready" }),
    stopping: stopping.signal,
  };
}

/** The start left the machine's `/proc` open: there, "self" is this process's pid as the machine sees it. */
function readHostPid(): number {
  const pid = Number(readlinkSync(`/proc/self/fd/${SERVER_PROC_FD}/self`));
  closeSync(SERVER_PROC_FD);
  return pid;
}
