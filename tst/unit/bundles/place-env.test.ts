import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { placeEnv } from "../../../src/bundles/place-env.js";

const FILES = new Map([
  ["env.toml", Buffer.from('type = "class"\n')],
  ["bin/run.sh", Buffer.from("#!/bin/sh\n")],
]);

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "place-"));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

describe("an env's files", () => {
  it("are placed whole, scripts executable, and left as they are where they are there already", () => {
    const folder = placeEnv(base, "abcd", "notes", FILES);
    expect(folder).toBe(join(base, "abcd/notes"));
    expect(readdirSync(folder).sort()).toEqual(["bin", "env.toml"]);
    expect(statSync(join(folder, "bin/run.sh")).mode & 0o111).not.toBe(0);
    const { ino } = statSync(join(folder, "env.toml"));
    placeEnv(base, "abcd", "notes", FILES);
    expect(statSync(join(folder, "env.toml")).ino).toBe(ino);
  });

  it.each<[string, (folder: string) => void]>([
    ["a changed file", (folder) => writeFileSync(join(folder, "env.toml"), 'type = "other"\n')],
    ["a file that is missing", (folder) => rmSync(join(folder, "bin/run.sh"))],
    ["a file too many", (folder) => writeFileSync(join(folder, "more.js"), "more")],
    [
      "a package that would be imported instead",
      (folder) => {
        mkdirSync(join(folder, "node_modules/agent-env"), { recursive: true });
        writeFileSync(join(folder, "node_modules/agent-env/index.js"), "evil");
      },
    ],
    [
      "a link that leads elsewhere",
      (folder) => {
        rmSync(join(folder, "env.toml"));
        symlinkSync("/etc/hostname", join(folder, "env.toml"));
      },
    ],
  ])("replace what lies there with %s", (_, change) => {
    const folder = placeEnv(base, "abcd", "notes", FILES);
    change(folder);
    placeEnv(base, "abcd", "notes", FILES);
    expect(readdirSync(folder, { recursive: true }).sort()).toEqual(["bin", "bin/run.sh", "env.toml"]);
    expect(readFileSync(join(folder, "env.toml"), "utf8")).toBe('type = "class"\n');
    expect(readdirSync(join(base, "abcd")).filter((name) => name !== "node_modules")).toEqual(["notes"]);
  });
});
