import type { Isolation } from "./isolation.js";

/**
 * What a start hands to the guardian, and the guardian to the server. Both ends are of one build.
 *
 * It travels as a file of mode 0600 that is deleted before anything of the session runs, open as the chain's stdin, and that
 * the guardian empties once it has read it; then through the guardian's pipe to the server. So nothing of it is in an argument
 * list or an environment, which programs of the session user may be able to read: hashes of tokens may be in it.
 */
export interface Handoff {
  /** The server: what Node runs, with its arguments. */
  readonly server: readonly string[];
  /** The server's whole environment. Where root did not start it, every program of the session user can read it. */
  readonly environment: Readonly<Record<string, string>>;
  readonly home: string;
  readonly forServer: ServerHandoff;
}

export interface ServerHandoff {
  readonly runtimeDir: string;
  readonly isolation: Isolation;
  readonly payload: unknown;
}

export type ToServer = { readonly type: "handoff"; readonly handoff: ServerHandoff };

/** A path that must not outlive the computer; that the computer can be used, so that its end is one that was asked for. */
export type ToGuardian = { readonly type: "removes"; readonly path: string } | { readonly type: "ready" };

/** The descriptor of the host's `/proc` in the guardian: what the start's shell opened. */
export const GUARDIAN_PROC_FD = 9;
/** The same in the server, after stdin, stdout, stderr and the guardian's pipe. */
export const SERVER_PROC_FD = 4;

/** The file whose lock says that a computer lives in a runtime folder. It lies outside: the session user empties the folder. */
export function lockOf(runtimeDir: string): string {
  return `${runtimeDir}.lock`;
}
