import { execFileSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeRuntimeFolder, makeX11Folder, runtimeFolder } from "../../../src/desktop/folders.js";
import { currentAccount } from "../../../src/desktop/users.js";
import { SetupError } from "../../../src/errors.js";

const account = currentAccount();
let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "folders-"));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

describe("the runtime folder", () => {
  it("is named after the port, and after this process for any free port", () => {
    expect(runtimeFolder(18_765)).toMatch(/agentenv(-\d+)?\/18765$/);
    expect(runtimeFolder(0)).toMatch(new RegExp(`agentenv(-\\d+)?/any-${process.pid}$`));
  });

  it("is made for its user alone, and made again without a word", () => {
    const folder = join(base, "1");
    makeRuntimeFolder(folder, account);
    chmodSync(folder, 0o755);
    makeRuntimeFolder(folder, account);
    expect(statSync(folder)).toMatchObject({ uid: account.uid });
    if (account.uid !== 0) expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  it("is never a symbolic link, nor another user's folder with something in it", () => {
    symlinkSync("/etc", join(base, "link"));
    expect(() => makeRuntimeFolder(join(base, "link"), account)).toThrow(SetupError);
    mkdirSync(join(base, "theirs"));
    writeFileSync(join(base, "theirs", "file"), "");
    const other = { ...account, uid: account.uid + 1 };
    expect(() => makeRuntimeFolder(join(base, "theirs"), other)).toThrow(/is not .*'s:/);
  });

  it("is refused where others may write, and where a socket's path would be too long", () => {
    chmodSync(base, 0o777);
    expect(() => makeRuntimeFolder(join(base, "1"), account)).toThrow(/not safe to use/);
    expect(() => makeRuntimeFolder(join(base, "x".repeat(90)), account)).toThrow(/too long/);
  });

  it("takes the place of those of other computers that nobody holds, and of nothing else", () => {
    for (const name of ["any-1", "18765", "18766"]) {
      mkdirSync(join(base, name));
      writeFileSync(join(base, name, "file"), "");
      if (name !== "18766") writeFileSync(join(base, `${name}.lock`), "");
    }
    writeFileSync(join(base, "9.lock"), "");
    mkdirSync(join(base, "somebody's"));
    const held = openSync(join(base, "any-1.lock"), "r");
    execFileSync("flock", ["-n", "3"], { stdio: ["ignore", "ignore", "ignore", held] });
    makeRuntimeFolder(join(base, "1"), account);
    expect(readdirSync(base).sort()).toEqual(["1", "any-1", "any-1.lock", "somebody's"]);
    expect(existsSync(join(base, "any-1", "file"))).toBe(true);
    closeSync(held);
    makeRuntimeFolder(join(base, "1"), account);
    expect(readdirSync(base).sort()).toEqual(["1", "somebody's"]);
  });
});

describe("the folder of X sockets", () => {
  const skipped = account.uid === 0 ? "" : " (skipped: only root can make it)";
  it.runIf(account.uid === 0)(`is made, or corrected, to what X servers want: everybody's, sticky${skipped}`, () => {
    const folder = join(base, ".X11-unix");
    makeX11Folder(folder);
    expect(statSync(folder)).toMatchObject({ uid: 0, mode: 0o41777 });
    chmodSync(folder, 0o755);
    makeX11Folder(folder);
    expect(statSync(folder).mode).toBe(0o41777);
  });

  it("is refused when it is something else", () => {
    symlinkSync("/etc", join(base, "link"));
    expect(() => makeX11Folder(join(base, "link"))).toThrow(SetupError);
  });
});
