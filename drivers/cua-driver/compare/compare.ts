import type { ComparisonReport } from "../../../src/computer/comparison.js";
import { SetupError } from "../../../src/errors.js";
import { canonicalJson } from "../../../src/protocol/canonical-json.js";
import { elementsOf, membersOf, memberText } from "../../../src/protocol/json-text.js";
import { SKILLS_EXTENSION } from "../../../src/protocol/skill.js";
import type { JsonObject, ToolDefinition } from "../../../src/protocol/tool.js";
import type { TextMcp } from "./http-mcp.js";
import { jsonDifferences } from "./json-differences.js";
import { type Found, ODD_REQUESTS, SCRIPT, type Step } from "./script.js";

/** What we serve beside: our tools, and the env's own skill. */
const OUR_TOOL = /^computer_/;
const THEIR_SKILL = "skill://cua-driver/";

/** How often a read is repeated that gave two answers. */
const MAX_READS = 5;
/** An action that does nothing. */
const FILLER: Step = ["press_key", { scope: "desktop", key: "shift" }];

/** The one and the other server, and what each of them has told so far. */
interface Side {
  readonly server: TextMcp;
  readonly found: Found;
}

/**
 * Asks both servers, on the same daemon, for everything that they list, every text, a script of calls and requests that are
 * wrong, and compares the answers as they are written.
 */
export async function compareServers(
  ours: TextMcp,
  theirs: TextMcp,
  onProgress?: (line: string) => void,
): Promise<ComparisonReport> {
  const comparison = new Comparison(
    { server: ours, found: nothingFound("compare-a") },
    { server: theirs, found: nothingFound("compare-b") },
  );
  onProgress?.("Comparing what is listed and every text");
  await comparison.initialize();
  await comparison.lists();
  onProgress?.("Comparing a script of calls");
  await comparison.script();
  for (const [method, params] of ODD_REQUESTS) await comparison.request(method, params);
  return comparison.report;
}

function nothingFound(label: string): Found {
  return { label, token: "", window: { pid: 0, window_id: 0 } };
}

class Comparison {
  readonly #differences: string[] = [];
  /** The tools that change nothing. */
  readonly #reads = new Set<string>();
  #compared = 0;

  constructor(
    private readonly ours: Side,
    private readonly theirs: Side,
  ) {}

  get report(): ComparisonReport {
    return { compared: this.#compared, differences: this.#differences };
  }

  /**
   * Both write `initialize` in their own order of keys; who they are may differ, and that ours tells of changed lists and
   * reads the folders of skills.
   */
  async initialize(): Promise<void> {
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "compare", version: "1" } };
    const [ours, theirs] = await this.#ask("initialize", params, params);
    this.#compare("initialize", canonicalHello(ours), canonicalHello(theirs));
  }

  async lists(): Promise<void> {
    const [ourTools, theirTools] = await this.#ask("tools/list", {}, {});
    this.#learnReads(theirTools);
    const [ourResources, theirResources] = await this.#ask("resources/list", {}, {});
    const [ourSkills, theirSkills] = await this.#ask("skills/list", {}, {});
    this.#list("tools", "name", [ourTools, theirTools], (name) => !OUR_TOOL.test(name));
    this.#list("resources", "uri", [ourResources, theirResources], (uri) => uri.startsWith(THEIR_SKILL));
    this.#list("skills", "uri", [ourSkills, theirSkills], (uri) => uri.startsWith(THEIR_SKILL));
    for (const uri of itemsOf("resources", theirResources).map((item) => nameOf(item, "uri"))) {
      await this.request("resources/read", { uri });
    }
    for (const uri of itemsOf("skills", theirSkills).map((item) => nameOf(item, "uri"))) {
      await this.request("skills/get", { uri });
    }
  }

  async script(): Promise<void> {
    for (const step of SCRIPT) {
      const answers = this.#reads.has(step[0]) ? await this.#read(step) : await this.#input(step);
      const [ours, theirs] = answers;
      this.#compare(`${step[0]} ${JSON.stringify(argumentsOf(step, this.ours))}`, steady(ours), steady(theirs));
    }
  }

  /** A desktop changes by itself, so what differs is read again. */
  async #read(step: Step): Promise<[string, string]> {
    for (let attempt = 1; ; attempt += 1) {
      const [ours, theirs] = [await call(this.ours, step), await call(this.theirs, step)];
      if (attempt === MAX_READS || steady(ours) === steady(theirs)) return [ours, theirs];
    }
  }

  /** The daemon counts single actions, whoever sends them, and adds a hint to every third: each side has its turn at one. */
  async #input(step: Step): Promise<[string, string]> {
    const ours = await call(this.ours, step);
    await this.#fill();
    const theirs = await call(this.theirs, step);
    await this.#fill();
    return [ours, theirs];
  }

  async #fill(): Promise<void> {
    for (let count = 0; count < 2; count += 1) await call(this.ours, FILLER);
  }

  async request(method: string, params: JsonObject): Promise<void> {
    const [ours, theirs] = await this.#ask(method, params, params);
    this.#compare(`${method} ${JSON.stringify(params)}`, steady(ours), steady(theirs));
  }

  /** The names in their order, each entry, and what is beside the list. `isTheirs` tells what we don't only add. */
  #list(list: string, key: string, answers: [string, string], isTheirs: (name: string) => boolean): void {
    const [ours, theirs] = answers.map(
      (answer) => new Map(itemsOf(list, answer).map((item) => [nameOf(item, key), item])),
    ) as [Map<string, string>, Map<string, string>];
    const own = [...ours.keys()].filter(isTheirs);
    this.#compare(`${list}/list, ${key}s`, JSON.stringify(own), JSON.stringify([...theirs.keys()]));
    for (const [name, item] of theirs) {
      const our = ours.get(name);
      if (our !== undefined) this.#compare(`${list}/list, ${name}`, our, item);
    }
    const [ourRest, theirRest] = answers.map((answer) => besides(list, answer)) as [string, string];
    this.#compare(`${list}/list, beside ${list}`, ourRest, theirRest);
  }

  #learnReads(list: string): void {
    for (const item of itemsOf("tools", list)) {
      const { name, annotations } = JSON.parse(item) as ToolDefinition;
      if (annotations?.readOnlyHint === true) this.#reads.add(name);
    }
  }

  /** What both answer: `result` or `error`, as it is written. */
  async #ask(method: string, ourParams: object, theirParams: object): Promise<[string, string]> {
    const ours = answerOf(await this.ours.server.answer(method, ourParams));
    const theirs = answerOf(await this.theirs.server.answer(method, theirParams));
    return [ours, theirs];
  }

  #compare(what: string, ours: string, theirs: string): void {
    this.#compared += 1;
    this.#differences.push(...jsonDifferences(ours, theirs).map((difference) => `${what}: ${difference}`));
  }
}

/** `{"result": …}` or `{"error": …}`. */
function answerOf(message: string): string {
  for (const kind of ["result", "error"]) {
    const text = memberText(message, kind);
    if (text !== undefined) return `{"${kind}":${text}}`;
  }
  throw new SetupError(`this is no answer: ${message.slice(0, 300)}`);
}

function canonicalHello(answer: string): string {
  const hello = JSON.parse(answer) as { result?: { serverInfo?: unknown; capabilities?: Record<string, JsonObject> } };
  if (hello.result !== undefined) delete hello.result.serverInfo;
  const capabilities = hello.result?.capabilities ?? {};
  for (const capability of Object.values(capabilities)) delete capability.listChanged;
  delete (capabilities.extensions?.[SKILLS_EXTENSION] as JsonObject | undefined)?.directoryRead;
  return canonicalJson(hello);
}

function resultOf(answer: string): string {
  return memberText(answer, "result") ?? "{}";
}

function itemsOf(list: string, answer: string): string[] {
  const text = memberText(resultOf(answer), list) ?? "[]";
  return (elementsOf(text) ?? []).map(({ start, end }) => text.slice(start, end));
}

function nameOf(item: string, key: string): string {
  return String(JSON.parse(memberText(item, key) ?? "null"));
}

/** What the answer holds beside its list, in one order, which isn't the same on both sides. */
function besides(list: string, answer: string): string {
  const result = resultOf(answer);
  const members = [...(membersOf(result) ?? [])]
    .filter(([name]) => name !== list)
    .map(([name, { start, end }]) => `${JSON.stringify(name)}:${result.slice(start, end)}`);
  return `{${members.sort().join(",")}}`;
}

/** What is another with each call, on either side alike: labels, ids of snapshots and captures, times taken. */
function steady(text: string): string {
  return text
    .replaceAll(/compare-[ab]/g, "compare-x")
    .replaceAll(/\bs[0-9a-f]{8}\b/g, "s________")
    .replaceAll(/(in|after) \d+ ms/g, "$1 N ms")
    .replaceAll(/\bwalk_ms=\d+/g, "walk_ms=N")
    .replaceAll(
      /"(walk_ms|elapsed_ms|duration_ms|capture_id|snapshot_id|turn_id|started_at|last_used_at)":("[^"]*"|[\d.]+)/g,
      '"$1":0',
    );
}

/** Calls a step's tool on one side, and keeps what its later steps need: the first window, and an element's token. */
async function call(side: Side, step: Step): Promise<string> {
  const [name, , options] = step;
  if (options?.afterReading) await call(side, ["get_window_state", side.found.window]);
  const answer = answerOf(await side.server.answer("tools/call", { name, arguments: argumentsOf(step, side) }));
  if (name === "list_windows" && side.found.window.pid === 0)
    side.found.window = firstWindow(answer) ?? side.found.window;
  const token = /\bs[0-9a-f]{8}:\d+/.exec(answer)?.[0];
  if (name === "get_window_state" && token !== undefined) side.found.token = token;
  return answer;
}

function argumentsOf([, args]: Step, { found }: Side): JsonObject {
  return typeof args === "function" ? args(found) : args;
}

/** The first window that is listed. */
function firstWindow(answer: string): Found["window"] | undefined {
  const { result } = JSON.parse(answer) as { result?: { structuredContent?: { windows?: Found["window"][] } } };
  const [first] = result?.structuredContent?.windows ?? [];
  return first && { pid: first.pid, window_id: first.window_id };
}
