import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { userInfo } from "node:os";
import type { SessionUser } from "../computer/session.js";
import { SetupError } from "../errors.js";
import { shellWord } from "../shell-word.js";
import type { Display } from "./display.js";
import { SESSION_PATH } from "./programs.js";
import { busAddress } from "./session-bus.js";

/** An account of the machine, as its user database (passwd, LDAP, …) has it. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  readonly shell: string;
}

/** The account of a name. An unknown name, root, and an account without a home are refused with a SetupError. */
export function accountOf(name: string): Account {
  const found = spawnSync("getent", ["passwd", "--", name], { encoding: "utf8" });
  const [entry, , uid, gid, , home, shell] = (found.stdout ?? "").split("\n", 1)[0]?.split(":") ?? [];
  if (found.status !== 0 || entry === undefined || !uid || !gid || !home) {
    throw new SetupError(`the session user ${name} does not exist`, {
      hint: `create it: useradd --create-home --shell /bin/bash ${shellWord(name)}`,
    });
  }
  const account = { name: entry, uid: Number(uid), gid: Number(gid), home, shell: shell || "/bin/sh" };
  if (account.uid === 0) {
    throw new SetupError("a computer never runs as root", { hint: "name another session user: --user NAME" });
  }
  if (!isFolder(home)) {
    throw new SetupError(`the home folder of the session user ${name} does not exist: ${home}`, {
      hint: `create it: install -d -o ${account.uid} -g ${account.gid} -m 700 ${shellWord(home)}`,
    });
  }
  return account;
}

/** The account that this process runs as. A uid that the machine has no account for (containers) goes by its number. */
export function currentAccount(): Account {
  try {
    const { username, uid, gid, homedir, shell } = userInfo();
    return { name: username, uid, gid, home: homedir, shell: shell || "/bin/sh" };
  } catch {
    const uid = process.getuid?.() ?? 0;
    const home = process.env.HOME;
    return {
      name: String(uid),
      uid,
      gid: process.getgid?.() ?? 0,
      home: home && isFolder(home) ? home : "/tmp",
      shell: "/bin/sh",
    };
  }
}

/** What a login gives a person. It is made anew: nothing of this process's own environment is in it. */
export function loginEnvironment(account: Account): Record<string, string> {
  return {
    HOME: account.home,
    USER: account.name,
    LOGNAME: account.name,
    SHELL: account.shell,
    PATH: SESSION_PATH,
    LANG: "C.UTF-8",
  };
}

/** What programs need beside a login's environment to show their windows and their accessibility trees. */
export function desktopEnvironment(display: Display, runtimeDir: string): Record<string, string> {
  const authority = display.server === undefined ? process.env.XAUTHORITY : undefined;
  return {
    XDG_SESSION_TYPE: "x11",
    DISPLAY: display.name,
    // A display that was there before us has its own way to tell who may connect.
    ...(authority === undefined ? {} : { XAUTHORITY: authority }),
    XDG_RUNTIME_DIR: runtimeDir,
    DBUS_SESSION_BUS_ADDRESS: busAddress(runtimeDir),
    // GTK 3 loads the bridge by itself, GTK 2 and Java look here; Qt and Chromium each have a switch of their own.
    GTK_MODULES: "gail:atk-bridge",
    QT_ACCESSIBILITY: "1",
    QT_LINUX_ACCESSIBILITY_ALWAYS_ON: "1",
    ACCESSIBILITY_ENABLED: "1",
  };
}

/** The session user where the server runs as that user itself: programs are simply started. */
export class OwnUser implements SessionUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  readonly #environment: Readonly<Record<string, string>>;

  constructor(account: Account, environment: Readonly<Record<string, string>>) {
    this.name = account.name;
    this.uid = account.uid;
    this.gid = account.gid;
    this.home = account.home;
    this.#environment = environment;
  }

  environment(): Record<string, string> {
    return { ...this.#environment };
  }

  /** `options.env` is added to `environment()`. */
  spawn(file: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
    return spawn(file, args, { cwd: this.home, ...options, env: { ...this.#environment, ...options.env } });
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
