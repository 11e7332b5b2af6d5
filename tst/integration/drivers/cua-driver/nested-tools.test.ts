import { afterAll, beforeAll, expect, it } from "vitest";
import { type Computer, startComputer } from "../../../harness/computer.js";

let computer: Computer;
beforeAll(async () => {
  computer = await startComputer();
  await fetch(`${computer.url}/tools/disable`, { method: "POST", body: '{"role": "locked", "tools": ["type_text"]}' });
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
});

it("a tool that is disabled for a role can't be run inside another tool by it", async () => {
  const locked = await computer.connect({ role: "locked" });
  const refused = { code: "permission_denied", applied: "no" };
  const call = async (tool: string, args: object) =>
    (await locked.call(tool, args as Record<string, unknown>)).structuredContent;
  const text = { scope: "desktop", text: "x" };
  expect(await call("type_text", text)).toMatchObject(refused);
  expect(await call("run_steps", { steps: [{ tool: "type_text", args: text }] })).toMatchObject(refused);
  expect(
    await call("run_steps", { steps: [{ tool: "move_cursor", args: { x: 1, y: 1 } }, { type_text: text }] }),
  ).toMatchObject(refused);
  expect(await call("run_script", { script: "return 1" })).toMatchObject(refused);
  expect(await call("replay_trajectory", { dir: "~/none" })).toMatchObject(refused);
});

it("whoever may call every tool may run them inside another", async () => {
  const free = await computer.connect();
  expect((await free.call("run_script", { script: "return 1 + 1" })).isError).not.toBe(true);
  const steps = await free.call("run_steps", {
    steps: [{ tool: "move_cursor", args: { scope: "desktop", x: 5, y: 5 } }],
  });
  expect(steps.structuredContent?.code).not.toBe("permission_denied");
});
