import { afterAll, beforeAll, expect, test } from "vitest";
import { agentenv, type Computer, startComputer } from "../../../harness/computer.js";
import { until } from "../../../harness/until.js";

let computer: Computer;
beforeAll(async () => {
  computer = await startComputer();
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
});

async function compare(...args: string[]) {
  return await agentenv(["compare", ...args]).exited;
}

test("`agentenv compare` finds no difference from cua-driver's own server, through every list, every text and a script of calls", async () => {
  const agent = await computer.connect();
  // Part of the script is about a window.
  await until(
    async () => (await agent.call("list_windows", {})).structuredContent?.windows as object[],
    (windows) => windows.length > 0,
    { ms: 30_000, what: "a window" },
  );
  const { code, stdout, stderr } = await compare(computer.url, "--json");
  expect(JSON.parse(stdout || stderr)).toEqual({ compared: expect.any(Number), differences: [] });
  expect(JSON.parse(stdout).compared).toBeGreaterThan(180);
  expect(code).toBe(0);
});

test("what differs is said, and the exit code is 1", async () => {
  const hidden = { role: "default", tools: ["get_cursor_position", "clipboard_read"] };
  await fetch(`${computer.url}/tools/disable`, { method: "POST", body: JSON.stringify(hidden) });
  const { code, stdout } = await compare(computer.url);
  expect(stdout).toMatch(/^differs tools\/list, names: \/22: ours "clipboard_write" theirs "clipboard_read"$/m);
  expect(stdout).toMatch(/^differs get_cursor_position \{\}: .*permission_denied/m);
  expect(code).toBe(1);
});

test("a computer that isn't there is said", async () => {
  const { code, stderr } = await compare("http://127.0.0.1:9");
  expect(stderr).toContain("http://127.0.0.1:9 can't be used");
  expect(code).toBe(1);
});
