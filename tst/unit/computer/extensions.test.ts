import { describe, expect, it } from "vitest";
import type { ComputerDriver } from "../../../src/computer/driver.js";
import { AgentEnvError } from "../../../src/errors.js";
import {
  COMPUTER_URN,
  DISPLAY_URN,
  EXEC_URN,
  KEYBOARD_URN,
  POINT_TOOLS,
  POINTER_URN,
  READY_URN,
  SPACES_URN,
} from "../../../src/protocol/computer.js";
import { TestComputer } from "../../fakes/computer-calls.js";
import { FullPaintDriver, PaintDriver } from "../../fakes/paint-driver.js";
import { until } from "../../harness/until.js";

interface CardExtension {
  uri: string;
  params: Record<string, unknown> & { methods?: Record<string, { endpoint: string; method: string }> };
}

function card(computer: TestComputer<ComputerDriver>): { extensions: CardExtension[]; operations: string[] } {
  return JSON.parse(computer.application.cardJson()).capabilities;
}

function params(computer: TestComputer<ComputerDriver>, uri: string): CardExtension["params"] | undefined {
  return card(computer).extensions.find((extension) => extension.uri === uri)?.params;
}

async function code(work: Promise<unknown>): Promise<unknown> {
  try {
    return { answered: await work };
  } catch (thrown) {
    if (thrown instanceof AgentEnvError) return [thrown.code, thrown.applied];
    throw thrown;
  }
}

describe("the card", () => {
  it("has the extensions of every computer, and the groups' where the driver has them", async () => {
    await using bare = await TestComputer.start(PaintDriver);
    await using full = await TestComputer.start(FullPaintDriver);
    const own = (computer: TestComputer<ComputerDriver>) =>
      card(computer)
        .extensions.map((extension) => extension.uri.replace(/^urn:agentenv:(.*)\/v1$/, "$1"))
        .filter((name) => !name.endsWith("-tool"));
    const always = ["skill", "computer", "computer-ready", "computer-display", "computer-spaces"];
    expect(own(bare)).toEqual([...always, "computer-exec", "intake", "data-objects"]);
    expect(own(full)).toEqual([
      ...always,
      "computer-pointer",
      "computer-keyboard",
      "computer-exec",
      "intake",
      "data-objects",
    ]);
    expect(card(bare).operations).toEqual(["data/add", "data/get"]);
  });

  it("says the driver's features and the platform", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    expect(params(computer, COMPUTER_URN)).toEqual({
      buttons: ["left", "right"],
      max_click_count: 3,
      keys: "all",
      max_text_length: 10_000,
      max_wait_ms: 60_000,
      max_drag_points: 5,
      max_duration_ms: 10_000,
      max_key_repeat: 100,
      max_scroll_amount: 100,
      delivery: "foreground",
      platform: expect.objectContaining({
        os: "linux",
        arch: expect.stringMatching(/^(amd64|arm64)$/),
        display: "x11",
      }),
      supports: [],
    });
  });

  it("says each extension's params and endpoints, set only where the driver can", async () => {
    await using bare = await TestComputer.start(PaintDriver);
    await using full = await TestComputer.start(FullPaintDriver, { settings: { exec_output_bytes: 5 } });
    const methods = (computer: TestComputer<ComputerDriver>, uri: string) =>
      Object.keys(params(computer, uri)?.methods ?? {});
    expect([methods(bare, DISPLAY_URN), methods(full, DISPLAY_URN)]).toEqual([["get"], ["get", "set"]]);
    expect(params(full, DISPLAY_URN)).toMatchObject({
      modes: [
        [64, 48],
        [32, 24],
      ],
    });
    expect(params(full, SPACES_URN)).toMatchObject({
      spaces: ["frame", "norm"],
      methods: { get: { method: "GET", endpoint: "/agentenv/ext/computer-spaces/get" }, set: { method: "POST" } },
    });
    expect(params(full, KEYBOARD_URN)).toMatchObject({
      tap_hold_ms: { min: 0, max: 1_000 },
      max_hold_ms: { min: 0, max: 600_000 },
      layouts: ["us", "de"],
    });
    expect(params(full, POINTER_URN)).toEqual({ buttons: ["left", "right"], kinds: ["foreground"] });
    expect(params(full, EXEC_URN)).toMatchObject({ max_output_bytes: 5, max_timeout_s: 3_600 });
    expect(params(full, "urn:agentenv:intake/v1")).toEqual({
      add: [{ part: "file", format: "file-tree", load: "additive" }],
      get: [{ part: "file", format: "file-tree" }],
    });
  });
});

describe("computer-ready", () => {
  it("runs every check until all have passed once, then those of what can go away, and sends no input", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    let ok = true;
    let looked = 0;
    let tools = 3;
    computer.driver.readyChecks = async () => [{ name: "daemon", ok, detail: "it answers" }];
    computer.driver.startChecks = async () => {
      looked += 1;
      return [{ name: "tools", ok: tools === 4, detail: `${tools} tools` }];
    };
    expect(await computer.extension(READY_URN, "status")).toMatchObject({ ready: false });
    tools = 4;
    const passed = {
      ready: true,
      checks: [
        { name: "display", ok: true, detail: "64x48" },
        { name: "capture", ok: true, detail: "64x48 pixels" },
        { name: "daemon", ok: true, detail: "it answers" },
        { name: "tools", ok: true, detail: "4 tools" },
      ],
    };
    expect(await computer.extension(READY_URN, "status")).toEqual(passed);
    tools = 3;
    expect(await computer.extension(READY_URN, "status")).toEqual(passed);
    ok = false;
    expect(await computer.extension(READY_URN, "status")).toEqual({
      ready: false,
      checks: passed.checks.map((check) => (check.name === "daemon" ? { ...check, ok: false } : check)),
    });
    expect([looked, computer.driver.captures, computer.driver.inputs]).toEqual([2, 2, []]);
  });

  it("says of each check by itself what fails", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    computer.driver.before = async (operation) => {
      if (operation === "capture") throw new Error("no picture");
    };
    computer.driver.readyChecks = async () => {
      throw new Error("no daemon");
    };
    expect(await computer.extension(READY_URN, "status")).toEqual({
      ready: false,
      checks: [
        { name: "display", ok: true, detail: "64x48" },
        { name: "capture", ok: false, detail: "no picture" },
        { name: "driver", ok: false, detail: "no daemon" },
      ],
    });
  });

  it("keeps every computer_* call device_unavailable until the checks have passed once, naming what fails", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    let up = false;
    let runs = 0;
    computer.driver.readyChecks = async () => {
      runs += 1;
      return [{ name: "daemon", ok: up, detail: "it doesn't answer" }];
    };
    const calls: [string, object][] = [
      ["computer_screenshot", {}],
      ["computer_click", { x: 1, y: 1 }],
      [
        "computer_drag",
        {
          path: [
            [1, 1],
            [2, 2],
          ],
        },
      ],
      ["computer_scroll", { direction: "up" }],
      ["computer_type", { text: "a" }],
      ["computer_key", { keys: ["a"] }],
      ["computer_wait", { ms: 0 }],
      ["computer_pointer_move", { x: 1, y: 1 }],
      ["computer_pointer_down", {}],
      ["computer_pointer_up", {}],
      ["computer_pointer_position", {}],
      ["computer_pointer_list", {}],
      ["computer_keyboard_down", { keys: ["a"] }],
      ["computer_keyboard_up", {}],
    ];
    expect(calls.map(([name]) => name).sort()).toEqual(
      computer.application.tools.map((tool) => tool.definition.name).sort(),
    );
    for (const [name, args] of calls) {
      const result = await me.call(name, { ...args });
      expect([name, result.structuredContent]).toMatchObject([
        name,
        {
          code: "device_unavailable",
          applied: "no",
          retryable: true,
          message: expect.stringContaining("daemon: it doesn't answer"),
        },
      ]);
    }
    expect(runs).toBe(calls.length);
    up = true;
    await me.ok("computer_wait", { ms: 0 });
    up = false;
    await me.ok("computer_wait", { ms: 0 });
    expect(runs).toBe(calls.length + 1);
  });

  it("is run once for calls that come together, and by a call that was given up for those that stay", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const [me, other] = [computer.caller("me"), computer.caller("other")];
    let runs = 0;
    let open = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    computer.driver.readyChecks = async () => {
      runs += 1;
      await opened;
      return [];
    };
    const cancelled = new AbortController();
    const given = me.call("computer_wait", { ms: 0 }, cancelled.signal);
    const together = [1, 2, 3].map(() => other.ok("computer_wait", { ms: 0 }));
    await until(() => runs === 1);
    cancelled.abort();
    expect((await given).structuredContent).toMatchObject({ code: "timeout", applied: "no" });
    open();
    await Promise.all(together);
    expect(runs).toBe(1);
  });

  it("is what readiness says, and then whether the display answers now", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    computer.driver.before = async () => {
      throw new Error("no X server");
    };
    expect(await computer.driver.readiness()).toMatchObject({
      ready: false,
      reasons: ["display: no X server", expect.any(String)],
    });
    computer.driver.before = async () => {};
    expect(await computer.driver.readiness()).toEqual({ ready: true, reasons: [] });
    computer.driver.before = async () => {
      throw new Error("no X server");
    };
    expect(await computer.driver.readiness()).toMatchObject({
      ready: false,
      reasons: [expect.stringContaining("no X server")],
    });
  });
});

describe("computer-spaces", () => {
  it("changes the default space, and says so in the point tools' descriptions on the card and in tools/list", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    let told = 0;
    computer.application.onChange(() => {
      told += 1;
    });
    const texts = (json: string) =>
      new Map<string, string>(
        (JSON.parse(json).tools ?? JSON.parse(json).capabilities.tools).map(
          (tool: { name: string; description: string }) => [tool.name, tool.description],
        ),
      );
    const before = texts(computer.application.toolListJson(undefined));
    expect(await computer.extension(SPACES_URN, "get")).toEqual({ default_space: "frame", default_norm_scale: 1_000 });
    expect(await computer.extension(SPACES_URN, "set", { default_space: "norm", default_norm_scale: 500 })).toEqual({
      default_space: "norm",
      default_norm_scale: 500,
    });
    const listed = texts(computer.application.toolListJson(undefined));
    expect(listed).toEqual(texts(computer.application.cardJson()));
    const changed = [...listed].filter(([name, text]) => before.get(name) !== text).map(([name]) => name);
    expect(changed.sort()).toEqual([...POINT_TOOLS].sort());
    expect(listed.get("computer_click")).toContain("0 to 500");
    expect(told).toBe(1);
    await me.frame();
    await me.ok("computer_click", { x: 250, y: 500 });
    await me.ok("computer_click", { x: 1, y: 2, space: "frame" });
    expect(computer.driver.inputs).toEqual([
      ["click", { x: 32, y: 47 }, "left", 1, []],
      ["click", { x: 1, y: 2 }, "left", 1, []],
    ]);
  });

  it("starts with the space of the settings, and keeps the grid where a change names none", async () => {
    await using computer = await TestComputer.start(PaintDriver, {
      settings: { default_space: "norm", default_norm_scale: 7 },
    });
    const [tool] = computer.application.tools;
    expect(tool?.definition.description).toContain("0 to 7");
    expect(await computer.extension(SPACES_URN, "set", { default_space: "frame" })).toEqual({
      default_space: "frame",
      default_norm_scale: 7,
    });
  });

  it("changes the descriptions of a computer that serves only some of its tools", async () => {
    class Narrow extends PaintDriver {
      override servedTools(tools: Parameters<PaintDriver["servedTools"]>[0]) {
        return tools.filter((tool) => tool.definition.name === "computer_click");
      }
    }
    await using computer = await TestComputer.start(Narrow);
    await computer.extension(SPACES_URN, "set", { default_space: "norm" });
    expect(computer.application.tools.map((tool) => tool.definition.description)).toEqual([
      expect.stringContaining("0 to 1000"),
    ]);
  });

  it("refuses another space and a grid out of its range as invalid_argument", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    expect(await code(computer.extension(SPACES_URN, "set", { default_space: "pixels" }))).toEqual([
      "invalid_argument",
      "no",
    ]);
    expect(await code(computer.extension(SPACES_URN, "set", { default_space: "norm", default_norm_scale: 0 }))).toEqual(
      ["invalid_argument", "no"],
    );
    expect(await computer.extension(SPACES_URN, "get")).toMatchObject({ default_space: "frame" });
  });
});

describe("computer-display", () => {
  it("tells the display and its modes, and sets one of them; frames from before are stale", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    await me.frame();
    const modes = [
      [64, 48],
      [32, 24],
    ];
    expect(await computer.extension(DISPLAY_URN, "get")).toEqual({ width: 64, height: 48, scale: 1, modes });
    expect(await computer.extension(DISPLAY_URN, "set", { width: 32, height: 24 })).toEqual({
      width: 32,
      height: 24,
      scale: 1,
      modes,
    });
    expect(await me.refusal("computer_click", { x: 1, y: 1 })).toEqual(["stale_frame", "no"]);
    expect(await computer.extension(DISPLAY_URN, "set", { width: 64, height: 48, scale: 2 })).toMatchObject({
      scale: 2,
    });
  });

  it("refuses a mode that it doesn't have, and says when a change may have been made", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    expect(await code(computer.extension(DISPLAY_URN, "set", { width: 33, height: 24 }))).toEqual([
      "invalid_argument",
      "no",
    ]);
    expect(await code(computer.extension(DISPLAY_URN, "set", { width: 32, height: 24, scale: 0 }))).toEqual([
      "invalid_argument",
      "no",
    ]);
    computer.driver.before = async (operation) => {
      if (operation === "set display") throw new Error("RANDR said no");
    };
    expect(await code(computer.extension(DISPLAY_URN, "set", { width: 32, height: 24 }))).toEqual([
      "internal",
      "unknown",
    ]);
  });
});

describe("computer-keyboard", () => {
  it("tells and changes its settings, those that a request names", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const usual = { tap_hold_ms: 50, type_delay_ms: 10, layout: "us", max_hold_ms: 10_000 };
    expect(await computer.extension(KEYBOARD_URN, "get")).toEqual(usual);
    expect(await computer.extension(KEYBOARD_URN, "set", { tap_hold_ms: 0, layout: "de" })).toEqual({
      ...usual,
      tap_hold_ms: 0,
      layout: "de",
    });
    expect(computer.driver.settings.layout).toBe("de");
  });

  it("refuses values out of their range as invalid_argument, a layout it lacks as unsupported, and changes nothing then", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    for (const wrong of [{ tap_hold_ms: 1_001 }, { type_delay_ms: -1 }, { max_hold_ms: 600_001 }]) {
      expect(await code(computer.extension(KEYBOARD_URN, "set", wrong))).toEqual(["invalid_argument", "no"]);
    }
    expect(await code(computer.extension(KEYBOARD_URN, "set", { tap_hold_ms: 1, layout: "fr" }))).toEqual([
      "unsupported",
      "no",
    ]);
    expect(await computer.extension(KEYBOARD_URN, "get")).toMatchObject({ tap_hold_ms: 50, layout: "us" });
  });
});
