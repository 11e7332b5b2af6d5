import type { ChildProcess, SpawnOptions } from "node:child_process";

/**
 * The desktop session that a driver acts in, as the desktop hands it over. Whatever has to happen as the session user
 * goes through `SessionUser`, so that the server can become a user of its own later.
 */
export interface ComputerSession {
  /** The X display, such as `:5`. */
  readonly display: string;
  /** The size that the display had when the session began, in pixels. */
  readonly displaySize?: { readonly width: number; readonly height: number };
  readonly user: SessionUser;
  /** The computer's own runtime folder (sockets, pid files), readable by the session user alone. */
  readonly runtimeDir: string;
  /** Where installed drivers lie: `<dataDir>/drivers/<name>/<version>/`. */
  readonly dataDir: string;
  /**
   * Resolves once the window manager is done with the input and the keymaps that came before, or after a short while where it
   * doesn't say; never rejects.
   */
  inputSettled?(): Promise<void>;
  /**
   * The same for the clicks that came before, and sooner where it holds none back. A key that is sent before it can reach the
   * program ahead of the click, and a pointer that is moved takes the click along.
   */
  clicksPassedOn?(): Promise<void>;
}

/** The user of the desktop session, and what is done as that user. */
export interface SessionUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  /**
   * The environment that a program of the session starts with: HOME, USER, PATH, a UTF-8 locale, DISPLAY, the session
   * bus. It holds nothing of the server's own environment, so no token.
   */
  environment(): Record<string, string>;
  /**
   * Starts a program as the session user, in its home unless `options.cwd` says otherwise, with `environment()` and what
   * `options.env` adds to it.
   */
  spawn(file: string, args: readonly string[], options?: SpawnOptions): ChildProcess;
}

/** A long-running program of the computer. The desktop starts it, watches it and restarts it with backoff. */
export interface ServiceSpec {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** Added to the session's environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Default: the session user's home. */
  readonly cwd?: string;
  /** Paths that must not outlive the service: removed before each start and when the computer is gone. */
  readonly removes?: readonly string[];
  /**
   * Resolves once the service answers; called after each start. A service without it counts as up once it runs.
   * Rejects or is aborted when the process dies first.
   */
  ready?(signal: AbortSignal): Promise<void>;
  /** How long `ready` may take, in milliseconds. Default 10,000. */
  readonly readyMs?: number;
}

/** A service as the desktop runs it. */
export interface RunningService {
  readonly name: string;
  /** The process's pid, undefined while it is away. */
  readonly pid: number | undefined;
  readonly state: "starting" | "up" | "away" | "failed" | "stopped";
  /** The last lines that it wrote to stdout and stderr. */
  readonly lastLines: readonly string[];
  /** Kills the process group and starts the service anew; the reason goes to the log. */
  restart(reason: string): void;
}
