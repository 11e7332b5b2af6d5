import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Computer } from "./computer.js";
import { until } from "./until.js";

/** What a program with a text field says of itself. */
export interface Seen {
  readonly text: string;
  /** Of the keys that reached it, the last 200: by their keysyms' names, or in a browser as the page's `key`. */
  readonly keys: readonly string[];
  /** How many there were in all. */
  readonly pressed: number;
  readonly focused: boolean;
  /** GTK's text view: its origin on the screen, what is selected in it, and presses in it as [button, 1 to 3 for a triple click]. */
  readonly view?: readonly [number, number];
  readonly selected?: string;
  readonly clicks?: readonly (readonly [number, number])[];
}

/** A program on a computer's screen that has the keyboard focus, in a field that it tells the content of. */
export interface TextField extends AsyncDisposable {
  seen(): Seen;
}

function scriptOf(name: string): string {
  return fileURLToPath(new URL(`../fakes/x11/${name}.py`, import.meta.url));
}

const NOTHING: Seen = { text: "", keys: [], pressed: 0, focused: false };

/**
 * Starts one of the programs in tst/fakes/x11 and waits until its field has the focus. With `keys` it writes keys down and does
 * nothing else with them.
 */
export async function startEntry(
  computer: Computer,
  name: "gtk-entry" | "tk-entry",
  keys: readonly "keys"[] = [],
): Promise<TextField> {
  const script = readFileSync(scriptOf(name), "utf8");
  const file = `${computer.runDir}/${name}-${crypto.randomUUID()}.json`;
  const line = 'setsid python3 -c "$0" "$@" >/dev/null 2>&1 & echo $!';
  const pid = (await computer.run("sh", "-c", line, script, file, ...keys)).trim();
  const seen = () => (existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Seen) : NOTHING);
  await until(seen, ({ focused }) => focused, { ms: 20_000, what: `the focus in ${name}` });
  return { seen, [Symbol.asyncDispose]: () => end(computer, pid) };
}

/** The same on a display that has no desktop, as a child of the test. */
export async function startLocalEntry(display: string, name: "gtk-entry" | "tk-entry"): Promise<TextField> {
  const folder = mkdtempSync(join(tmpdir(), "entry-"));
  const file = join(folder, "seen.json");
  const child = spawn("python3", [scriptOf(name), file], {
    env: { ...process.env, DISPLAY: display, GDK_BACKEND: "x11", NO_AT_BRIDGE: "1" },
    stdio: "ignore",
  });
  const seen = () => (existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Seen) : NOTHING);
  const field: TextField = {
    seen,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) {
        const gone = once(child, "exit");
        child.kill("SIGKILL");
        await gone;
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    await until(seen, ({ focused }) => focused, { ms: 20_000, what: `the focus in ${name}` });
    return field;
  } catch (thrown) {
    await field[Symbol.asyncDispose]();
    throw thrown;
  }
}

const PAGE = `<!doctype html><title>chromium-input</title>
<input id="field" autocomplete="off" spellcheck="false" style="width: 90%; font-size: 20px" autofocus>
<script>
  const seen = { text: "", keys: [], pressed: 0, focused: false };
  let sending = Promise.resolve();
  const tell = () => { const body = JSON.stringify(seen); sending = sending.then(() => fetch("/seen", { method: "POST", body })); };
  const field = document.getElementById("field");
  field.addEventListener("input", () => { seen.text = field.value; tell(); });
  field.addEventListener("keydown", (event) => {
    seen.keys = [...seen.keys, event.key].slice(-200);
    seen.pressed += 1;
    tell();
    if (location.hash === "#keys") event.preventDefault();
  });
  field.focus();
  setInterval(() => {
    const focused = document.hasFocus() && document.activeElement === field;
    if (focused !== seen.focused) { seen.focused = focused; tell(); }
  }, 50);
</script>`;

const FLAGS = [
  "--no-first-run",
  "--disable-quic",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--password-store=basic",
];

/** Starts Chromium, as the session user and in its own sandbox, on a page with one field. */
export async function startChromium(computer: Computer, keys: readonly "keys"[] = []): Promise<TextField> {
  let last = NOTHING;
  const server = createServer((request, response) => {
    if (request.method !== "POST") return void response.setHeader("content-type", "text/html; charset=utf-8").end(PAGE);
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => {
      body += piece;
    });
    request.on("end", () => {
      last = JSON.parse(body) as Seen;
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/#${keys.join("")}`;
  const line = 'setsid chromium "$@" >/dev/null 2>&1 & echo $!';
  const profile = `--user-data-dir=${computer.runDir}/chromium-${crypto.randomUUID()}`;
  const pid = (await computer.run("sh", "-c", line, "sh", ...FLAGS, profile, `--app=${url}`)).trim();
  await until(
    () => last,
    ({ focused }) => focused,
    { ms: 60_000, what: "the focus in Chromium's field" },
  );
  return {
    seen: () => last,
    async [Symbol.asyncDispose]() {
      await end(computer, pid);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Ends a program that was started with setsid, and all that it started. */
async function end(computer: Computer, pid: string): Promise<void> {
  await computer.run("sh", "-c", 'kill -- "-$0" 2>/dev/null; kill "$0" 2>/dev/null; :', pid);
}
