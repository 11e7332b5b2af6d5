import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { McpClient } from "../../../../src/mcp/client.js";
import { type Computer, envFolder, startComputer } from "../../../harness/computer.js";
import { startChromium, startEntry, type TextField } from "../../../harness/text-fields.js";
import { until } from "../../../harness/until.js";
import { ALL, RARE } from "./texts.js";

/** A desk with nothing on it that would take the focus when it comes up. */
const env = envFolder('type = "computer"\ndriver = "reference"\n');
let computer: Computer;
let agent: McpClient;
beforeAll(async () => {
  computer = await startComputer(env.folder);
  agent = await computer.connect();
  // The least forgiving: no time for an application to come after.
  await computer.invoke("computer-keyboard/set", { tap_hold_ms: 0, type_delay_ms: 0 });
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
  env[Symbol.dispose]();
});

async function done(name: string, args: Record<string, unknown>): Promise<void> {
  const result = await agent.call(name, args as never);
  if (result.isError) throw new Error(JSON.stringify(result.structuredContent));
}

async function clear(field: TextField): Promise<void> {
  for (const keys of [["Home"], ["Shift", "End"], ["Delete"]]) await done("computer_key", { keys });
  await until(
    () => field.seen().text,
    (text) => text === "",
    { what: "an empty field" },
  );
}

/** Types a text into the empty field, and answers what the application then has. */
async function typed(field: TextField, text: string): Promise<string> {
  await done("computer_type", { text });
  const arrived = await until(
    () => field.seen().text,
    (seen) => [...seen].length >= [...text].length,
    { ms: 10_000, what: `"${text}"` },
  ).catch(() => field.seen().text);
  await clear(field);
  return arrived;
}

describe.each([
  ["a GTK entry", (on: Computer) => startEntry(on, "gtk-entry")],
  ["a Tk entry", (on: Computer) => startEntry(on, "tk-entry")],
  ["Chromium's input", startChromium],
] as const)("in %s", (_name, start) => {
  it("ASCII, Latin-1 and samples of other scripts arrive whole, ten runs in a row", async () => {
    await using field = await start(computer);
    for (let run = 1; run <= 10; run += 1) {
      for (const text of ALL) expect(await typed(field, text), `run ${run}`).toBe(text);
    }
  });

  it("they arrive whole on a French and a Russian keyboard with Caps Lock and Num Lock on too", async () => {
    await using field = await start(computer);
    for (const key of ["CapsLock", "NumLock"]) await done("computer_key", { keys: [key] });
    try {
      for (const layout of ["fr", "us,ru"]) {
        await computer.run("setxkbmap", "-layout", layout);
        for (const text of [...ALL, ...RARE]) expect(await typed(field, text), layout).toBe(text);
      }
    } finally {
      await computer.run("setxkbmap", "-layout", "us");
      for (const key of ["CapsLock", "NumLock"]) await done("computer_key", { keys: [key] });
    }
  });
});

it("a page in Chromium is told the right key of each character too, whatever its keys made before", async () => {
  await using field = await startChromium(computer);
  for (const text of ["жщ", "中文字符很多", "éÉ ñ", "αβγδεζηθικλμνξοπρστυφχψω", "жщ ab"]) {
    const before = field.seen().pressed;
    await done("computer_type", { text });
    const { keys, pressed } = await until(
      () => field.seen(),
      (seen) => seen.text.endsWith(text),
      { what: `"${text}"` },
    );
    const named = keys.slice(before - pressed).filter((key) => key !== "Shift");
    expect(named.join("")).toBe(text);
  }
});
