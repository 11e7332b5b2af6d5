import { dirname } from "node:path";
import sharp from "sharp";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CuaDriver } from "../../../../drivers/cua-driver/driver.js";
import type { DriverOptions } from "../../../../src/computer/driver.js";
import type { JsonObject } from "../../../../src/protocol/tool.js";
import { TestComputer } from "../../../fakes/computer-calls.js";
import { FakeCuaDaemon, type FakeRequest, textResult } from "../../../fakes/cua-daemon.js";
import { until } from "../../../harness/until.js";

let daemon: FakeCuaDaemon;
let computer: TestComputer<CuaDriver>;

/** What the daemon answers the driver's reads with: a display of 64x48, black. */
async function reads(request: FakeRequest) {
  const size = { width: 64, height: 48, scale_factor: 1 };
  if (request.name === "get_screen_size") return { result: { ...textResult("size"), structuredContent: size } };
  const pixels = { create: { width: 64, height: 48, channels: 3 as const, background: "#000" } };
  const data = (await sharp(pixels).png().toBuffer()).toString("base64");
  return {
    result: {
      content: [{ type: "image", data, mimeType: "image/png" }],
      structuredContent: { screen_width: 64, screen_height: 48, scale_factor: 1 },
    },
  };
}

const isRead = ({ name }: FakeRequest) => name === "get_screen_size" || name === "get_desktop_state";

/** The inputs that the daemon read, in order. */
function inputs(): [name: string | undefined, args: JsonObject | undefined][] {
  return daemon.calls.filter((request) => !isRead(request)).map(({ name, args }) => [name, args]);
}

/** Answers inputs with `answer`, reads as a computer does. */
function inputsAnswer(answer: (request: FakeRequest) => ReturnType<FakeCuaDaemon["behaviour"]>): void {
  daemon.behaviour = async (request) => (isRead(request) ? reads(request) : answer(request));
}

beforeEach(async () => {
  daemon = await FakeCuaDaemon.start();
  inputsAnswer(() => ({ result: textResult("done") }));
  const runtimeDir = dirname(daemon.socketPath);
  // Without what only an installed executable serves.
  class BareCuaDriver extends CuaDriver {
    constructor(options: DriverOptions) {
      super({ ...options, session: { ...options.session, runtimeDir } });
    }
    override readyChecks = async () => [];
    override startChecks = async () => [];
    override forwardedServers = () => [];
    override bundledSkill = () => [];
    override onUnknownTool = async () => undefined;
  }
  computer = await TestComputer.start(BareCuaDriver);
});
afterEach(async () => {
  await computer[Symbol.asyncDispose]();
  await daemon[Symbol.asyncDispose]();
});

describe("cua-driver as a computer's driver", () => {
  it("acts in desktop scope at the pixel that a frame's point maps to", async () => {
    const agent = computer.caller();
    await agent.frame();
    await agent.ok("computer_click", { x: 10, y: 20, count: 2, modifiers: ["Control", "Shift"] });
    await agent.ok("computer_drag", {
      path: [
        [1, 2],
        [3, 4],
      ],
      duration_ms: 100,
    });
    await agent.ok("computer_scroll", { x: 5, y: 6, direction: "down", amount: 2 });
    expect(inputs()).toEqual([
      ["click", { scope: "desktop", x: 10, y: 20, button: "left", count: 2, modifier: ["ctrl", "shift"] }],
      [
        "drag",
        { scope: "desktop", from_x: 1, from_y: 2, to_x: 3, to_y: 4, button: "left", duration_ms: 100, modifier: [] },
      ],
      ["scroll", { scope: "desktop", x: 5, y: 6, direction: "down", amount: 2 }],
    ]);
  });

  it("presses a chord of modifiers and one key, a capital letter with its Shift", async () => {
    const agent = computer.caller();
    for (const keys of [
      ["Control", "s"],
      ["Control", "S"],
      ["Enter"],
      ["Alt", "F4"],
      [" "],
      ["Meta", "ArrowUp"],
      ["~"],
    ]) {
      await agent.ok("computer_key", { keys });
    }
    expect(inputs().map(([, args]) => [args?.key, args?.modifiers])).toEqual([
      ["s", ["ctrl"]],
      ["s", ["ctrl", "shift"]],
      ["enter", []],
      ["f4", ["alt"]],
      ["space", []],
      ["up", ["super"]],
      ["~", []],
    ]);
  });

  it("refuses what cua-driver can't do as unsupported, with nothing sent", async () => {
    const agent = computer.caller();
    await agent.frame();
    expect(await agent.refusal("computer_key", { keys: ["a", "b"] })).toEqual(["unsupported", "no"]);
    expect(await agent.refusal("computer_key", { keys: ["é"] })).toEqual(["unsupported", "no"]);
    expect(await agent.refusal("computer_key", { keys: ["BrowserBack"] })).toEqual(["unsupported", "no"]);
    const scroll = { x: 1, y: 1, direction: "down", modifiers: ["Control"] };
    expect(await agent.refusal("computer_scroll", scroll)).toEqual(["unsupported", "no"]);
    expect(await agent.refusal("computer_click", { x: 1, y: 1, modifiers: ["q"] })).toEqual(["unsupported", "no"]);
    expect(await agent.refusal("computer_click", { x: 1, y: 1, button: "back" })).toEqual(["unsupported", "no"]);
    expect(await agent.refusal("computer_type", { text: "x".repeat(5_001) })).toEqual(["invalid_argument", "no"]);
    expect(inputs()).toEqual([]);
  });

  it("types in pieces of at most 50 characters, whole ones", async () => {
    const text = `${"é".repeat(49)}😀${"b".repeat(50)}c`;
    await computer.caller().ok("computer_type", { text });
    const pieces = inputs().map(([, args]) => String(args?.text));
    expect(pieces.map((piece) => [...piece].length)).toEqual([50, 50, 1]);
    expect(pieces.join("")).toBe(text);
  });

  it("stops typing after the piece under way when the call is cancelled, and keeps others waiting until that is typed", async () => {
    let typed = () => {};
    inputsAnswer(async ({ name }) => {
      if (name === "type_text") await new Promise<void>((resolve) => (typed = resolve));
      return { result: textResult("done") };
    });
    const cancel = new AbortController();
    const typing = computer.caller("typist", cancel.signal).call("computer_type", { text: "x".repeat(200) });
    await until(() => inputs().length === 1);
    cancel.abort();
    expect((await typing).structuredContent).toMatchObject({ applied: "unknown" });
    const pressing = computer.caller("other").ok("computer_key", { keys: ["Enter"] });
    await computer.caller("third").ok("computer_wait", { ms: 50 });
    expect(inputs()).toHaveLength(1);
    typed();
    await pressing;
    expect(inputs().map(([name]) => name)).toEqual(["type_text", "press_key"]);
  });

  it("says delivery_failed, applied unknown, for a reply that is lost, cut or a failure, and never sends again", async () => {
    const agent = computer.caller();
    await agent.frame();
    const click = { x: 1, y: 1 };
    inputsAnswer(() => "drop");
    expect(await agent.refusal("computer_click", click)).toEqual(["delivery_failed", "unknown"]);
    inputsAnswer(() => ({ cut: '{"ok":true,"resu' }));
    expect(await agent.refusal("computer_click", click)).toEqual(["delivery_failed", "unknown"]);
    inputsAnswer(() => ({ result: { ...textResult("no"), isError: true } }));
    expect(await agent.refusal("computer_click", click)).toEqual(["delivery_failed", "unknown"]);
    inputsAnswer(() => ({ refuse: "no" }));
    expect(await agent.refusal("computer_click", click)).toEqual(["delivery_failed", "unknown"]);
    expect(inputs()).toHaveLength(4);
  });

  it("says internal for an answer that isn't one, and answers the next call", async () => {
    const agent = computer.caller();
    await agent.frame();
    inputsAnswer(() => ({ raw: "lies\n" }));
    expect((await agent.refusal("computer_click", { x: 1, y: 1 }))[0]).toBe("internal");
    inputsAnswer(() => ({ result: textResult("done") }));
    await agent.ok("computer_click", { x: 1, y: 1 });
    daemon.behaviour = () => ({ result: { ...textResult("size"), structuredContent: { width: "wide" } } });
    expect(await agent.refusal("computer_screenshot")).toEqual(["internal", "no"]);
  });

  it("says device_unavailable, not applied, while the daemon is away, and works once it is back", async () => {
    const agent = computer.caller();
    await agent.frame();
    await daemon.die();
    expect(await agent.refusal("computer_key", { keys: ["Enter"] })).toEqual(["device_unavailable", "no"]);
    expect(await agent.refusal("computer_screenshot")).toEqual(["device_unavailable", "no"]);
    await daemon.listen();
    await agent.ok("computer_key", { keys: ["Enter"] });
  });
});
