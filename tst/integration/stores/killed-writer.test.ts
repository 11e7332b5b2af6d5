import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packageRoot } from "../../../src/package-root.js";
import { readSkillFolder } from "../../../src/skills/folder.js";
import { SkillStore } from "../../../src/skills/skill-store.js";
import { openStore } from "../../../src/stores/open-store.js";
import { FailingS3 } from "../../fakes/failing-s3.js";
import { agentenv } from "../../harness/computer.js";
import { S3Server } from "../../harness/rclone.js";
import { SkillFolder, skillText } from "../../harness/skill-folder.js";
import { until } from "../../harness/until.js";

const made = new SkillFolder("killed", {
  "SKILL.md": skillText("killed"),
  "a.txt": "a".repeat(5_000),
});
const { digest } = readSkillFolder(made.folder);
afterAll(() => made[Symbol.dispose]());

/** What a reader finds after a writer died: all of the bundle or none. Then the next add completes it. */
async function expectAllOrNothing(url: string): Promise<"whole" | "none"> {
  await using store = await openStore(url);
  const skills = new SkillStore(store);
  const seen = await skills.get(digest).catch((thrown: Error) => thrown);
  if (seen instanceof Error) {
    expect(seen.message).toMatch(/has no skill/);
    expect(await skills.list()).toEqual([]);
  } else expect(seen.digest).toBe(digest);
  await skills.add(readSkillFolder(made.folder));
  expect(await skills.verify(digest)).toEqual([]);
  expect(await skills.list()).toHaveLength(1);
  return seen instanceof Error ? "none" : "whole";
}

/** By which a writer changes files, and how many of each two files and a manifest take at least. */
const STEPS = { mkdir: 1, open: 3, write: 3, half: 3, sync: 3, rename: 3, renamed: 3, "sync-folder": 2 };

describe("a writer to a folder", () => {
  it.each(Object.entries(STEPS))(
    "that is killed at any %s leaves no half bundle, and the next add completes it",
    async (kind, least) => {
      const root = mkdtempSync(join(tmpdir(), "killed-"));
      const seen: string[] = [];
      try {
        for (let which = 1; ; which += 1) {
          const url = pathToFileURL(join(root, String(which))).href;
          const exit = await agentenv(["skills", "add", made.folder, "--store", url], {
            NODE_OPTIONS: `--import=${pathToFileURL(join(packageRoot, "tst/fakes/die-at-step.mjs")).href}`,
            DIE_AT_STEP: `${kind} ${which}`,
          }).exited;
          if (exit.signal === null) {
            expect(exit.code, exit.stderr).toBe(0);
            break;
          }
          expect(exit.signal).toBe("SIGKILL");
          seen.push(await expectAllOrNothing(url));
        }
        expect(seen.length).toBeGreaterThanOrEqual(least);
        expect(seen[0]).toBe("none");
        if (kind === "renamed") expect(seen).toEqual(["none", "none", "whole"]);
      } finally {
        rmSync(root, { recursive: true, force: true });
      }
    },
  );
});

describe("a writer to an S3 server", () => {
  let server: S3Server;
  beforeAll(async () => {
    Object.assign(process.env, S3Server.credentials);
    server = await S3Server.start();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  it.each(["before", "after"] as const)(
    "that is killed %s any of its requests arrives leaves no half bundle, and the next add completes it",
    async (when) => {
      await using proxy = await FailingS3.before(server.endpoint);
      const seen = new Set<string>();
      for (let request = 1; ; request += 1) {
        const name = `${when}-${request}`;
        const writer = agentenv(["skills", "add", made.folder, "--store", server.url(name, proxy.endpoint)]);
        const first = proxy.asked.length;
        proxy.trouble = async ({ count }) => {
          if (count !== first + request) return undefined;
          // The request has left the writer; with "after", the store does what it asked and nobody hears of it.
          writer.child.kill("SIGKILL");
          await writer.exited;
          return when === "before" ? "cut-before" : "cut-after";
        };
        const exit = await writer.exited;
        if (exit.signal === null) {
          expect(exit.code, exit.stderr).toBe(0);
          // A list, two files, a list, the manifest.
          expect(request).toBe(6);
          break;
        }
        await until(
          () => proxy.running,
          (running) => running === 0,
          { what: "the store's work" },
        );
        seen.add(await expectAllOrNothing(server.url(name)));
      }
      expect(seen).toEqual(new Set(when === "before" ? ["none"] : ["none", "whole"]));
    },
  );
});
