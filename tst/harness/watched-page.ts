import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { McpClient } from "../../src/mcp/client.js";
import type { CallToolResult } from "../../src/protocol/tool.js";
import { until } from "./until.js";

/** Something that reached the page. */
export interface PageEvent {
  readonly kind: "ready" | "keydown" | "input" | "click" | "confirmed";
  readonly key?: string;
  readonly keyCode?: number;
  readonly value?: string;
  readonly answer?: boolean;
  /** Where on the screen. */
  readonly at?: readonly [number, number];
}

interface BrowserWindow {
  readonly pid: number;
  readonly window_id: number;
}

/** A field, and a button that asks a question; both in the middle of the window, so that they are easy to hit. */
const PAGE = `<!doctype html><meta charset="utf-8"><title>watched-page</title>
<style>* { font-size: 30px; margin: 20px; }</style>
<input id="field" autocomplete="off" spellcheck="false"><br><button id="ask">Ask</button>
<script>
  let sending = Promise.resolve();
  const tell = (event) => { const body = JSON.stringify(event); sending = sending.then(() => fetch("/seen", { method: "POST", body })); };
  const [field, ask] = [document.getElementById("field"), document.getElementById("ask")];
  addEventListener("keydown", ({ key, keyCode }) => tell({ kind: "keydown", key, keyCode }));
  field.addEventListener("input", () => tell({ kind: "input", value: field.value }));
  addEventListener("click", ({ target, screenX, screenY }) => tell({ kind: "click", value: target.id, at: [screenX, screenY] }), true);
  ask.addEventListener("click", () => tell({ kind: "confirmed", answer: confirm("Sure?") }));
  tell({ kind: "ready" });
</script>`;

/** A page in a browser that cua-driver started and is bound to, and what the page received. */
export class WatchedPage implements AsyncDisposable {
  readonly events: PageEvent[] = [];
  readonly #server = createServer((request, response) => {
    if (request.method !== "POST") return void response.setHeader("content-type", "text/html").end(PAGE);
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => {
      body += piece;
    });
    request.on("end", () => {
      this.events.push(JSON.parse(body) as PageEvent);
      response.end();
    });
  });
  #bound: { target_id: string; tab_id: string } = { target_id: "", tab_id: "" };

  private constructor(
    private readonly client: McpClient,
    private readonly session: string,
  ) {}

  static async open(client: McpClient): Promise<WatchedPage> {
    const page = new WatchedPage(client, `page-${crypto.randomUUID().slice(0, 8)}`);
    await new Promise<void>((resolve) => page.#server.listen(0, "127.0.0.1", resolve));
    try {
      await page.#open();
      return page;
    } catch (thrown) {
      await page[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  async #open(): Promise<void> {
    const { session } = this;
    const profile = { mode: "isolated_new" };
    const prepared = await this.#told("browser_prepare", { session, allow_launch: true, profile });
    const windows = await until(
      async () => (await this.#told("list_windows", { pid: prepared.prepared_pid })).windows as BrowserWindow[],
      (all) => all.length > 0,
      { ms: 30_000, what: "the browser's window" },
    );
    const [{ pid, window_id }] = windows as [BrowserWindow];
    const state = await until(
      () => this.#told("get_browser_state", { pid, window_id, session }),
      ({ mutation_allowed }) => mutation_allowed === true,
      { ms: 20_000, every: 200, what: "a browser that can be acted on" },
    );
    const [tab] = state.tabs as { tab_id: string }[];
    this.#bound = { target_id: String(state.target_id), tab_id: String(tab?.tab_id) };
    const { port } = this.#server.address() as AddressInfo;
    await this.act("browser_navigate", { url: `http://127.0.0.1:${port}/` });
    await this.until("ready");
  }

  /** Calls one of the browser tools on the page. */
  act(tool: string, args: object): Promise<CallToolResult> {
    return this.client.call(tool, { ...this.#bound, session: this.session, ...args });
  }

  /** The page's element as it is known now, by the words that name it. */
  async ref(node: "input" | "button"): Promise<string> {
    const { structuredContent } = await this.act("get_browser_state", { snapshot_format: "dom_refs_v1" });
    const refs = structuredContent?.refs as { node: string; ref: string }[] | undefined;
    const found = refs?.find((each) => each.node === node);
    if (found === undefined) throw new Error(`no ${node} in ${JSON.stringify(structuredContent)}`);
    return found.ref;
  }

  /** Waits for an event of a kind, and answers the last of those that came since the last `forget`. */
  async until(kind: PageEvent["kind"], holds: (event: PageEvent) => boolean = () => true): Promise<PageEvent> {
    const found = () => this.events.findLast((event) => event.kind === kind && holds(event));
    return (await until(found, (event) => event !== undefined, { what: `${kind} on the page` })) as PageEvent;
  }

  forget(): void {
    this.events.length = 0;
  }

  async #told(tool: string, args: object): Promise<Record<string, unknown>> {
    const { structuredContent = {} } = await this.client.call(tool, args as Record<string, unknown>);
    return structuredContent;
  }

  /** The browser that cua-driver started ends with its session. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.call("end_session", { session: this.session }).catch(() => {});
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
