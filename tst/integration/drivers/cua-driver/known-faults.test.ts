import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { KNOWN_FAULTS } from "../../../../drivers/cua-driver/known-faults.js";
import type { McpClient } from "../../../../src/mcp/client.js";
import { type Computer, startComputer } from "../../../harness/computer.js";
import { until } from "../../../harness/until.js";
import { WatchedPage } from "../../../harness/watched-page.js";

let computer: Computer;
let agent: McpClient;
let page: WatchedPage;
beforeAll(async () => {
  computer = await startComputer();
  agent = await computer.connect();
  page = await WatchedPage.open(agent);
});
afterAll(async () => {
  await page?.[Symbol.asyncDispose]();
  await computer?.[Symbol.asyncDispose]();
});
beforeEach(() => page.forget());

const desktop = { scope: "desktop" };

/** Puts the keyboard's focus into the page's field: as long as the address bar has it, keys go there. */
async function focusField(): Promise<void> {
  await page.act("browser_click", { ref: await page.ref("input"), delivery_mode: "foreground" });
  await page.until("click", ({ value }) => value === "field");
  page.forget();
}

/** Whatever was pressed, a last key arrives after it. */
async function keysUntilF9(): Promise<unknown[]> {
  await agent.call("computer_key", { keys: ["F9"] });
  await page.until("keydown", ({ key }) => key === "F9");
  return page.events.filter(({ kind }) => kind === "keydown").map(({ key }) => key);
}

/** By id: the fault as the daemon shows it, and that what the skill says to do instead is right. */
const HELD: Readonly<Record<string, () => Promise<void>>> = {
  "click-outside": async () => {
    const answer = await agent.call("click", { ...desktop, x: 5000, y: 10 });
    expect(answer.isError).not.toBe(true);
    expect(JSON.stringify(answer)).toContain("Sent");
    const { structuredContent: at } = await agent.call("get_cursor_position", {});
    expect(at).toMatchObject({ x: 1279, y: 10 });
    await agent.call("computer_screenshot", {});
    expect((await agent.call("get_screen_size", {})).structuredContent).toMatchObject({ width: 1280, height: 800 });
    const refused = await agent.call("computer_click", { x: 5000, y: 10 });
    expect(refused.structuredContent).toMatchObject({ code: "out_of_bounds", applied: "no" });
  },

  "capital-letter": async () => {
    await focusField();
    expect((await agent.call("press_key", { ...desktop, key: "A" })).isError).not.toBe(true);
    expect(await keysUntilF9()).toEqual(["a", "F9"]);
    page.forget();
    await agent.call("press_key", { ...desktop, key: "a", modifiers: ["shift"] });
    expect(await keysUntilF9()).toEqual(["Shift", "A", "F9"]);
  },

  "two-keys": async () => {
    await focusField();
    const answer = await agent.call("hotkey", { ...desktop, keys: ["a", "b"] });
    expect(JSON.stringify(answer)).toContain("a+b");
    expect(answer.isError).not.toBe(true);
    expect(await keysUntilF9()).toEqual(["b", "F9"]);
    page.forget();
    for (const key of ["a", "b"]) await agent.call("computer_key", { keys: [key] });
    expect(await keysUntilF9()).toEqual(["a", "b", "F9"]);
    page.forget();
    for (const key of ["a", "b"]) await agent.call("press_key", { ...desktop, key });
    expect(await keysUntilF9()).toEqual(["a", "b", "F9"]);
  },

  "line-break": async () => {
    await focusField();
    const answer = await page.act("browser_type", { ref: await page.ref("input"), text: "Buy milk\n", replace: true });
    expect(answer.structuredContent).toMatchObject({ delivery: { delivered_count: 9 } });
    expect((await page.until("input")).value).toBe("Buy milk");
    expect(await keysUntilF9()).toEqual(["F9"]);
    page.forget();
    for (const press of [
      () => agent.call("computer_key", { keys: ["Enter"] }),
      () => agent.call("press_key", { ...desktop, key: "enter" }),
    ]) {
      page.forget();
      await press();
      expect(await page.until("keydown")).toMatchObject({ key: "Enter", keyCode: 13 });
    }
  },

  "key-codes": async () => {
    await focusField();
    const args = { ref: await page.ref("input"), text: "x\n", mode: "keystrokes" };
    const answer = await page.act("browser_type", args);
    expect(answer.structuredContent).toMatchObject({ delivery: { delivered_count: 2 } });
    await page.until("keydown", ({ key }) => key === "Enter");
    const codes = () => page.events.filter(({ kind }) => kind === "keydown").map(({ key, keyCode }) => [key, keyCode]);
    expect(codes()).toEqual([
      ["x", 0],
      ["Enter", 0],
    ]);
    for (const type of [
      () => agent.call("computer_type", { text: "x\n" }),
      () => agent.call("type_text", { ...desktop, text: "x\n" }),
    ]) {
      page.forget();
      await type();
      await page.until("keydown", ({ key }) => key === "Enter");
      expect(codes()).toEqual([
        ["x", 88],
        ["Enter", 13],
      ]);
    }
  },

  "click-opens-dialog": async () => {
    const answer = await page.act("browser_click", { ref: await page.ref("button"), delivery_mode: "foreground" });
    expect(answer.structuredContent).toMatchObject({ effect: "refused" });
    await agent.call("computer_key", { keys: ["Enter"] });
    // It had been clicked all along.
    expect((await page.until("confirmed")).answer).toBe(true);
    const clicks = page.events.filter(({ kind }) => kind === "click");
    expect(clicks).toMatchObject([{ value: "ask" }]);
    page.forget();
    await agent.call("computer_screenshot", {});
    const [x, y] = clicks[0]?.at ?? [];
    for (const [close, answer] of [
      [() => agent.call("computer_key", { keys: ["Enter"] }), true],
      [() => agent.call("press_key", { ...desktop, key: "enter" }), true],
      [() => agent.call("press_key", { ...desktop, key: "escape" }), false],
    ] as const) {
      page.forget();
      expect((await agent.call("computer_click", { x, y })).structuredContent).toMatchObject({ applied: "yes" });
      await page.until("click", ({ value }) => value === "ask");
      await close();
      expect((await page.until("confirmed")).answer).toBe(answer);
    }
  },

  "dialog-out-of-reach": async () => {
    const clicked = await page.act("browser_click", { ref: await page.ref("button"), input_route: "dom_event" });
    expect(clicked).toMatchObject({ isError: true, structuredContent: { code: "tool_invocation_failed" } });
    const { structuredContent } = await page.act("browser_dialog", { action: "inspect" });
    expect(structuredContent).toMatchObject({ status: "refused" });
    await agent.call("computer_key", { keys: ["Escape"] });
    expect((await page.until("confirmed")).answer).toBe(false);
    const after = await until(
      async () => (await page.act("browser_dialog", { action: "inspect" })).structuredContent,
      (seen) => seen?.status === "ok",
      { ms: 30_000, what: "a page that can be used again" },
    );
    expect(after).toMatchObject({ present: false });
  },
};

describe("what the computer's skill says that cua-driver answers wrongly", () => {
  it("is held by a test each", () => {
    expect(Object.keys(HELD)).toEqual(KNOWN_FAULTS.map(({ id }) => id));
  });

  it.each(KNOWN_FAULTS)("is still answered so, and there is the way out that the skill names: $id", async ({ id }) => {
    await HELD[id]?.();
  });
});
