import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TestCaller } from "../../../fakes/computer-calls.js";
import { ReferenceComputer } from "../../../harness/reference.js";
import { startLocalEntry, type TextField } from "../../../harness/text-fields.js";
import { until } from "../../../harness/until.js";
import { XTestClient } from "../../../harness/x-client.js";
import { XServer } from "../../../harness/x-server.js";
import { ALL, ASCII, LATIN_1 } from "./texts.js";

let server: XServer;
let x: XTestClient;
let computer: ReferenceComputer;
let agent: TestCaller;
let field: TextField;
beforeAll(async () => {
  server = await XServer.xvfb();
  x = await XTestClient.open(server.display);
  computer = await ReferenceComputer.start(server.display);
  agent = computer.caller("agent");
  field = await startLocalEntry(server.display, "tk-entry");
});
afterAll(async () => {
  await field?.[Symbol.asyncDispose]();
  await computer?.[Symbol.asyncDispose]();
  x?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
});

async function typed(text: string, arrives = text, by = agent): Promise<string> {
  await by.ok("computer_type", { text });
  const arrived = await until(
    () => field.seen().text,
    (seen) => [...seen].length >= [...arrives].length,
    { ms: 60_000, what: "the text" },
  ).catch(() => field.seen().text);
  await clear();
  return arrived;
}

async function clear(): Promise<void> {
  for (const keys of [["Home"], ["Shift", "End"], ["Delete"]]) await agent.ok("computer_key", { keys });
  await until(
    () => field.seen().text,
    (text) => text === "",
    { ms: 20_000, what: "an empty field" },
  );
}

/** Characters that follow each other in Unicode. */
function characters(from: number, count: number): string {
  return Array.from({ length: count }, (_, index) => String.fromCodePoint(from + index)).join("");
}

describe("the keyboard's layout", () => {
  it.each(["de", "fr", "ru", "us,ru", "gr", "in", "ara", "de(neo)", "us(dvorak)"])(
    "%s doesn't change what is typed",
    async (name) => {
      const [, layout = "", variant = ""] = /^([^(]*)(?:\((.*)\))?$/.exec(name) ?? [];
      await server.run("setxkbmap", "-layout", layout, "-variant", variant);
      try {
        for (const text of ALL) expect(await typed(text)).toBe(text);
        await agent.ok("computer_key", { keys: ["Q"] });
        expect(await typed("@", "Q@")).toBe("Q@");
      } finally {
        await server.run("setxkbmap", "-layout", "us", "-variant", "");
      }
    },
  );

  it("a second group that is locked doesn't change what is typed", async () => {
    await server.run("setxkbmap", "-layout", "us,ru");
    const xkb = await x.extension("xkb");
    xkb.LatchLockState(xkb.UseCoreKbd, 0, 0, true, 1, 0, 0, false, 0);
    await x.sync();
    try {
      for (const text of ["Hello, World 42!", "Привет", "Mixed Привет"]) expect(await typed(text)).toBe(text);
    } finally {
      xkb.LatchLockState(xkb.UseCoreKbd, 0, 0, true, 0, 0, 0, false, 0);
      await server.run("setxkbmap", "-layout", "us");
    }
  });
});

describe("locks and held keys", () => {
  it.each(["CapsLock", "NumLock"])("%s on doesn't change what is typed, and stays on", async (key) => {
    const xkb = await x.extension("xkb");
    const locked = async () =>
      new Promise<number>((resolve) =>
        xkb.GetState(xkb.UseCoreKbd, (_: unknown, state: { lockedMods: number }) => resolve(state.lockedMods)),
      );
    await agent.ok("computer_key", { keys: [key] });
    const before = await locked();
    expect(before).not.toBe(0);
    for (const text of [ASCII, LATIN_1, "Ωω Жж µ ß ÿ ǅ ı"]) expect(await typed(text)).toBe(text);
    await agent.ok("computer_key", { keys: ["a"] });
    expect(await typed("Z", "aZ")).toBe("aZ");
    expect(await locked()).toBe(before);
    await agent.ok("computer_key", { keys: [key] });
    expect(await locked()).toBe(0);
  });

  it("Shift that the caller holds applies to what it types, what others hold doesn't", async () => {
    await agent.ok("computer_keyboard_down", { keys: ["Shift"] });
    const other = computer.caller("other");
    expect(await typed("abc é", "abc é", other).catch(String)).toBe("abc é");
    await agent.ok("computer_keyboard_down", { keys: ["Shift"] });
    await agent.ok("computer_type", { text: "abc é中" });
    await agent.ok("computer_keyboard_up", {});
    expect(await x.keysDown()).toEqual([]);
    await until(
      () => field.seen().text,
      (text) => text.length === 6,
    );
    expect(field.seen().text).toBe("ABC É中");
    await clear();
  });

  it("a modifier that another program holds down doesn't apply, and is down again after", async () => {
    const xtest = await x.extension("xtest");
    const control = 37;
    xtest.FakeInput(xtest.KeyPress, control, 0, 0, 0, 0);
    await x.sync();
    await agent.ok("computer_type", { text: "plain" });
    expect(await x.keysDown()).toEqual([control]);
    xtest.FakeInput(xtest.KeyRelease, control, 0, 0, 0, 0);
    await x.sync();
    await until(
      () => field.seen().text,
      (text) => text.length === 5,
    );
    expect(field.seen().text).toBe("plain");
    await clear();
  });
});

describe("spare keys", () => {
  it("5,000 different characters in one session arrive whole", async () => {
    for (const from of [0x4e00, 0x4e00 + 2500]) {
      const text = characters(from, 2500);
      expect(await typed(text)).toBe(text);
    }
  }, 180_000);

  it("a key that is held keeps its character while all others are used up", async () => {
    await agent.ok("computer_keyboard_down", { keys: ["ж"] });
    const [keycode = 0] = await x.keysDown();
    const before = await x.keysym(keycode);
    await agent.ok("computer_type", { text: characters(0x5e00, 60) });
    expect(await x.keysym(keycode)).toBe(before);
    expect(await x.keysDown()).toEqual([keycode]);
    await agent.ok("computer_keyboard_up", {});
    expect(await x.keysDown()).toEqual([]);
    await clear();
  });

  it("text that can't be typed whole is refused before anything is typed", async () => {
    // Someone else takes every keycode that is free.
    const mapping = (await x.ask("GetKeyboardMapping", 8, 248)) as number[][];
    const mine = await ReferenceComputer.start(server.display);
    const spare = mapping.flatMap((symbols, index) => (symbols.every((symbol) => symbol === 0) ? [index + 8] : []));
    try {
      for (let keycode = 8; keycode < 256; keycode += 1) {
        const symbols = mapping[keycode - 8] as number[];
        if (spare.includes(keycode) || symbols[0]?.toString(16).startsWith("100")) {
          if (symbols[0] !== undefined && symbols[0] >= 0x1008fe00 && symbols[0] < 0x10090000) continue;
          x.client.ChangeKeyboardMapping(keycode, 1, [0x1005ff00 + keycode]);
        }
      }
      await x.sync();
      const someone = mine.caller("someone");
      expect(await someone.refusal("computer_type", { text: "plain, then 中" })).toEqual(["unsupported", "no"]);
      expect(await typed("plain", "plain", someone)).toBe("plain");
    } finally {
      await mine[Symbol.asyncDispose]();
      await server.run("setxkbmap", "-layout", "us");
    }
  });

  it("are empty again once the driver is closed", async () => {
    const mine = await ReferenceComputer.start(server.display);
    const free = async () =>
      ((await x.ask("GetKeyboardMapping", 8, 248)) as number[][]).filter((row) => row.every((symbol) => symbol === 0))
        .length;
    const before = await free();
    await mine.caller("someone").ok("computer_type", { text: "一二三" });
    expect(await free()).toBeLessThan(before);
    await mine[Symbol.asyncDispose]();
    expect(await free()).toBe(before);
    await clear();
  });
});
