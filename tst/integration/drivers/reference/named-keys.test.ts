import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NAMED_KEYS } from "../../../../src/computer/keys.js";
import type { McpClient } from "../../../../src/mcp/client.js";
import { type Computer, envFolder, startComputer } from "../../../harness/computer.js";
import { startChromium, startEntry } from "../../../harness/text-fields.js";
import { until } from "../../../harness/until.js";

/** Keys that X has no keysym for. */
const NOT_IN_X = ["Accept", "FnLock", "Symbol", "SymbolLock"];

/** The name that X has for the keysym of each key that it calls otherwise than W3C does. */
const X_NAMES: Readonly<Record<string, string>> = {
  Again: "Redo",
  Alt: "Alt_L",
  AltGraph: "ISO_Level3_Shift",
  ArrowDown: "Down",
  ArrowLeft: "Left",
  ArrowRight: "Right",
  ArrowUp: "Up",
  Attn: "3270_Attn",
  AudioVolumeDown: "XF86AudioLowerVolume",
  AudioVolumeMute: "XF86AudioMute",
  AudioVolumeUp: "XF86AudioRaiseVolume",
  Backspace: "BackSpace",
  BrightnessDown: "XF86MonBrightnessDown",
  BrightnessUp: "XF86MonBrightnessUp",
  BrowserBack: "XF86Back",
  BrowserFavorites: "XF86Favorites",
  BrowserForward: "XF86Forward",
  BrowserHome: "XF86HomePage",
  BrowserRefresh: "XF86Refresh",
  BrowserSearch: "XF86Search",
  BrowserStop: "XF86Stop",
  CapsLock: "Caps_Lock",
  ContextMenu: "Menu",
  Control: "Control_L",
  Copy: "XF86Copy",
  CrSel: "3270_CursorSelect",
  Cut: "XF86Cut",
  Eject: "XF86Eject",
  Enter: "Return",
  EraseEof: "3270_EraseEOF",
  ExSel: "3270_ExSelect",
  Fn: "XF86Fn",
  Hibernate: "XF86Hibernate",
  Hyper: "Hyper_L",
  LogOff: "XF86LogOff",
  MediaPlayPause: "XF86AudioPlay",
  MediaStop: "XF86AudioStop",
  MediaTrackNext: "XF86AudioNext",
  MediaTrackPrevious: "XF86AudioPrev",
  Meta: "Super_L",
  NumLock: "Num_Lock",
  PageDown: "Next",
  PageUp: "Prior",
  Paste: "XF86Paste",
  Play: "3270_Play",
  Power: "XF86PowerDown",
  PowerOff: "XF86PowerOff",
  PrintScreen: "Print",
  Props: "SunProps",
  ScrollLock: "Scroll_Lock",
  Shift: "Shift_L",
  Standby: "XF86Standby",
  Super: "Super_L",
  WakeUp: "XF86WakeUp",
  ZoomIn: "XF86ZoomIn",
  ZoomOut: "XF86ZoomOut",
};
/** What GTK calls otherwise than X; it leaves out XF86, and has no names for two. */
const GTK_NAMES: Readonly<Record<string, string>> = {
  Next: "Page_Down",
  Prior: "Page_Up",
  SunProps: "0x1005ff70",
  XF86Fn: "0x100811d0",
};
/** What a page in Chromium is told otherwise: X has one keysym for two keys, and for two Chromium has no key. */
const CHROMIUM_NAMES: Readonly<Record<string, string>> = { Again: "Redo", Super: "Meta", Fn: "\0", Power: "\0" };

const inX = (key: string) => X_NAMES[key] ?? key;
const inGtk = (key: string) => GTK_NAMES[inX(key)] ?? inX(key).replace(/^XF86/, "");
const inChromium = (key: string) => CHROMIUM_NAMES[key] ?? key;

const env = envFolder('type = "computer"\ndriver = "reference"\n');
let computer: Computer;
let agent: McpClient;
beforeAll(async () => {
  computer = await startComputer(env.folder);
  agent = await computer.connect();
  await computer.invoke("computer-keyboard/set", { tap_hold_ms: 0, type_delay_ms: 0 });
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
  env[Symbol.dispose]();
});

describe.each([
  ["a GTK entry", (on: Computer) => startEntry(on, "gtk-entry", ["keys"]), inGtk],
  ["a Tk entry", (on: Computer) => startEntry(on, "tk-entry", ["keys"]), inX],
  ["Chromium's input", (on: Computer) => startChromium(on, ["keys"]), inChromium],
] as const)("in %s", (_name, start, nameOf) => {
  it("every named key that X can press arrives with its keysym, ten runs in a row", async () => {
    await using field = await start(computer);
    // A lock is put back by its second press.
    const keys = NAMED_KEYS.filter((key) => !NOT_IN_X.includes(key)).flatMap((key) =>
      key.endsWith("Lock") ? [key, key] : [key],
    );
    for (let run = 1; run <= 10; run += 1) {
      for (const key of keys) {
        const { isError, structuredContent } = await agent.call("computer_key", { keys: [key] } as never);
        expect(isError, `${key}: ${structuredContent?.message}`).not.toBe(true);
      }
      const { keys: seen } = await until(
        () => field.seen(),
        ({ pressed }) => pressed >= run * keys.length,
        { what: `run ${run}` },
      ).catch(() => field.seen());
      expect(seen.slice(-keys.length), `run ${run}`).toEqual(keys.map(nameOf));
    }
  });
});

it("a key that X has no keysym for is refused", async () => {
  for (const key of NOT_IN_X) {
    const { structuredContent } = await agent.call("computer_key", { keys: [key] } as never);
    expect(structuredContent).toMatchObject({ code: "unsupported", applied: "no" });
  }
});
