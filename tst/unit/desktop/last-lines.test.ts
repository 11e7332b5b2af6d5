import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { LastLines } from "../../../src/desktop/last-lines.js";

async function linesOf(script: string): Promise<{ kept: readonly string[]; seen: string[] }> {
  const child = spawn("/bin/sh", ["-c", script], { stdio: ["ignore", "pipe", "pipe"] });
  const lines = new LastLines();
  const seen: string[] = [];
  lines.follow(child, (line) => seen.push(line));
  await once(child, "close");
  return { kept: lines.all, seen };
}

test("the last 50 lines are kept, from stdout and stderr, the unfinished last one included", async () => {
  const { kept, seen } = await linesOf("i=0; while [ $i -lt 60 ]; do echo line $i; i=$((i+1)); done; printf end");
  expect(seen).toHaveLength(61);
  expect(kept).toHaveLength(50);
  expect(kept.at(-1)).toBe("end");
  expect((await linesOf("echo wrong >&2")).kept).toEqual(["wrong"]);
});

test("a program that writes without end on one line takes no memory for it", async () => {
  const { kept } = await linesOf("head -c 300000 /dev/zero | tr '\\0' x");
  expect(kept).toHaveLength(50);
  expect(Math.max(...kept.map(({ length }) => length))).toBe(2000);
});

test("whoever keeps a dead program's output open is not waited for", async () => {
  const begun = performance.now();
  expect((await linesOf("echo bye; setsid sleep 3 &")).kept).toEqual(["bye"]);
  expect(performance.now() - begun).toBeLessThan(2000);
});
