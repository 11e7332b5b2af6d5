import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readBundle } from "../../../src/bundles/bundle.js";
import { readEnvContent } from "../../../src/bundles/env-content.js";
import { readEnvFile } from "../../../src/bundles/env-file.js";
import { SetupError } from "../../../src/errors.js";
import { packageRoot } from "../../../src/package-root.js";

const COMPUTER = 'type = "computer"\ndriver = "reference"\n';

let parent: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "bundle-"));
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

function write(path: string, text = COMPUTER): string {
  const file = join(parent, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(SetupError);
    return `${(thrown as SetupError).message}\n${(thrown as SetupError).hint}`;
  }
  return "nothing was refused";
}

describe("a bundle", () => {
  it("is one env with its name, or several with the bundle's name before theirs", () => {
    write("desk/env.toml");
    expect(readBundle(join(parent, "desk"))).toMatchObject([
      { id: "desk", name: "desk", file: { driver: "reference" } },
    ]);
    write("office/envs/mail/env.toml");
    write("office/envs/chat/env.toml");
    write("office/envs/.hidden");
    write("office/README.md");
    const envs = readBundle(`${parent}/office/`);
    expect(envs.map(({ id, folder }) => [id, folder])).toEqual([
      ["office/chat", join(parent, "office/envs/chat")],
      ["office/mail", join(parent, "office/envs/mail")],
    ]);
  });

  it("is each of those that ship, and the test bundle", () => {
    for (const [folder, ids] of [
      ["bundles/desk", ["desk"]],
      ["bundles/shop", ["shop"]],
      ["tst/integration/computer/cua-driver", ["cua-driver/desk"]],
    ] as const) {
      expect(readBundle(join(packageRoot, folder)).map(({ id }) => id)).toEqual(ids);
    }
  });

  it("with another layout is refused, with the path and what is expected there", () => {
    const bundle = join(parent, "office");
    expect(refusal(() => readBundle(bundle))).toMatch(/no folder .*office\n.*envs\/ENV\/env\.toml/);
    mkdirSync(bundle);
    expect(refusal(() => readBundle(bundle))).toContain(`${bundle} has neither env.toml nor a folder envs`);
    mkdirSync(join(bundle, "envs"));
    expect(refusal(() => readBundle(bundle))).toContain(`${bundle}/envs holds no env`);
    mkdirSync(join(bundle, "envs/mail"));
    expect(refusal(() => readBundle(bundle))).toContain(`${bundle}/envs/mail has no env.toml`);
    write("office/envs/mail/env.toml");
    const stray = write("office/envs/stray.txt");
    expect(refusal(() => readBundle(bundle))).toContain(`${stray} is no folder: expected is ${stray}/env.toml`);
    rmSync(stray);
    symlinkSync("/etc", join(bundle, "envs/link"));
    expect(refusal(() => readBundle(bundle))).toContain("link is no folder");
    rmSync(join(bundle, "envs/link"));
    write("office/envs/two words/env.toml");
    expect(refusal(() => readBundle(bundle))).toContain("two words can't be the name");
    rmSync(join(bundle, "envs/two words"), { recursive: true });
    write("office/env.toml");
    expect(refusal(() => readBundle(bundle))).toContain(`${bundle} has both env.toml and a folder envs`);
  });

  it("is told as one where a single env was wanted", () => {
    write("office/envs/mail/env.toml");
    expect(refusal(() => readEnvFile(join(parent, "office")))).toMatch(
      /no env\.toml\nname one of its envs: .*office\/envs/,
    );
  });

  it("with an env.toml that isn't right is refused as up refuses it", () => {
    write("office/envs/mail/env.toml", `${COMPUTER}colour = 1\n`);
    expect(refusal(() => readBundle(join(parent, "office")))).toMatch(/mail\/env\.toml: unknown key "colour"/);
  });
});

describe("an env's content", () => {
  it("is every file but what Git and npm keep, the same from another file system", () => {
    write("desk/env.toml");
    write("desk/seeds/notes.txt", "notes");
    write("desk/.git/HEAD", "ref");
    write("desk/node_modules/left/index.js", "left");
    symlinkSync("seeds/notes.txt", join(parent, "desk/link.txt"));
    const content = readEnvContent(join(parent, "desk"));
    expect([...content.keys()].sort()).toEqual(["env.toml", "link.txt", "seeds/notes.txt"]);
    expect(content.get("link.txt")?.toString()).toBe("notes");
    const copy = mkdtempSync("/dev/shm/bundle-");
    try {
      cpSync(join(parent, "desk"), join(copy, "desk"), { recursive: true, verbatimSymlinks: true });
      expect(new Map([...readEnvContent(join(copy, "desk"))].sort())).toEqual(new Map([...content].sort()));
    } finally {
      rmSync(copy, { recursive: true });
    }
  });

  it("that leaves its folder, is no file or is too large is refused with the path", () => {
    write("desk/env.toml");
    const desk = join(parent, "desk");
    symlinkSync("/etc/shadow", join(desk, "shadow"));
    expect(refusal(() => readEnvContent(desk))).toContain("shadow is a symbolic link that leaves the env's folder");
    rmSync(join(desk, "shadow"));
    execFileSync("mkfifo", [join(desk, "pipe")]);
    expect(refusal(() => readEnvContent(desk))).toContain("pipe is a FIFO");
    rmSync(join(desk, "pipe"));
    execFileSync("truncate", ["-s", "65M", join(desk, "large")]);
    expect(refusal(() => readEnvContent(desk))).toContain("large takes the env over 67108864 bytes");
  });
});
