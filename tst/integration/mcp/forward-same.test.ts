import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ForwardMcpOptions, Serving } from "../../../src/index.js";
import { elementsOf, memberText } from "../../../src/protocol/json-text.js";
import { ForwardingEnv } from "../../fakes/forwarding-env.js";
import {
  EVERYTHING,
  everythingServer,
  MISBEHAVING,
  misbehavingServer,
  type ServerProcess,
} from "../../harness/everything.js";
import { type RawExchange, RawMcp } from "../../harness/raw-mcp.js";
import { until } from "../../harness/until.js";

/** One request: its method, and its params as JSON text. */
type Step = readonly [method: string, params?: string];

const call = (name: string, args = "{}", more = ""): Step => [
  "tools/call",
  `{"name":"${name}","arguments":${args}${more}}`,
];

const EVERYTHING_STEPS: Step[] = [
  // A while after its start the server asks for the roots; a shared one is told them by the client whose call is in the works.
  call("trigger-long-running-operation", '{"duration":0.9,"steps":1}'),
  ["ping"],
  ["tools/list"],
  ["tools/list", '{"_meta":{"x":1.0}}'],
  ["tools/list", '{"cursor":"none"}'],
  ["tools/list", '{"cursor":7}'],
  call("echo", '{"message":"\\u00e9 9007199254740993"}'),
  call("echo", "{}"),
  call("no-such-tool"),
  call("get-sum", '{"a":1.0,"b":2e0}'),
  call("get-sum", '{"a":"x"}'),
  call("get-annotated-message", '{"messageType":"error","includeImage":true}'),
  call("get-structured-content", '{"location":"New York"}'),
  call("get-tiny-image"),
  call("get-resource-links", '{"count":3}'),
  call("get-resource-reference", '{"resourceType":"Text","resourceId":1.5}'),
  call("gzip-file-as-resource", '{"name":"a.gz","data":"data:text/plain,hello","outputType":"resource"}'),
  call("trigger-long-running-operation", '{"duration":0.2,"steps":2}', ',"_meta":{"progressToken":"t\\u0031"}'),
  call("trigger-long-running-operation", '{"duration":0.1,"steps":1}', ',"_meta":{"progressToken":7,"odd":1.0}'),
  call("trigger-sampling-request", '{"prompt":"hi","maxTokens":10}'),
  call("trigger-elicitation-request"),
  call("get-roots-list"),
  ["tools/call", '{"arguments":{}}'],
  ["tools/call", '{"name":7}'],
  ["tools/call"],
  ["resources/list"],
  ["resources/templates/list"],
  ["resources/read", '{"uri":"demo://resource/static/document/features.md"}'],
  ["resources/read", '{"uri":"demo://nothing"}'],
  ["resources/read", "{}"],
  ["resources/subscribe", '{"uri":"demo://resource/static/document/features.md"}'],
  ["resources/unsubscribe", '{"uri":"demo://resource/static/document/features.md"}'],
  ["prompts/list"],
  ["prompts/list", '{"cursor":"none"}'],
  ["prompts/list", '{"cursor":7}'],
  ["resources/list", '{"cursor":7}'],
  ["resources/templates/list", '{"cursor":7}'],
  ["prompts/get", '{"name":"simple-prompt"}'],
  ["prompts/get", '{"name":"args-prompt","arguments":{"city":"Paris","state":"x"}}'],
  ["prompts/get", '{"name":"args-prompt","arguments":{}}'],
  ["prompts/get", '{"name":"none"}'],
  [
    "completion/complete",
    '{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"S"}}',
  ],
  ["completion/complete", '{"ref":{"type":"ref/prompt","name":"none"},"argument":{"name":"a","value":""}}'],
  ["completion/complete", "{}"],
  ["logging/setLevel", '{"level":"debug"}'],
  ["logging/setLevel", '{"level":"loud"}'],
  ["tasks/list"],
  ["tasks/get", '{"taskId":"none"}'],
  ["no/such-method", '{"n":1.0}'],
];

const ODD_STEPS: Step[] = [
  ["ping"],
  ["resources/list"],
  ["resources/templates/list"],
  ["resources/read", '{"uri":"odd://1"}'],
  ["resources/read", '{"uri":"anything","_meta":{"n":1.0}}'],
  ["resources/subscribe", '{"uri":"odd://1"}'],
  ["resources/unsubscribe", '{"uri":"odd://1"}'],
  ["prompts/list"],
  ["prompts/get", '{"name":"p","arguments":{"n":1.0}}'],
  ["completion/complete", '{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}'],
  ["logging/setLevel", '{"level":"info","n":9007199254740993}'],
  ["odd/method", '{"a":[-0]}'],
  ["other/method"],
  ...["empty", "nothing", "content", "blocks", "failed", "spread", "invalid", "own", "fraction", "bare", "told"].map(
    (kind) => call("odd", `{"kind":"${kind}"}`),
  ),
  call(
    "odd",
    '{"n":9007199254740993,"one":1.0,"minus":-0,"tiny":1e-400,"2":0,"1":0,"\\u0061":"\\/"}',
    ',"_meta":{"n":1.0},"more":1.0',
  ),
  call("odd", '{"kind":"content"}', ',"_meta":{"progressToken":9007199254740993}'),
  ["odd/method", '{"_meta":{"progressToken":123456789012345678901234567890}}'],
  call("second"),
  call("unknown", '{"n":1.0}'),
  ["tools/list", '{"cursor":"page\\u0020two"}'],
  ["prompts/list", '{"cursor":"none"}'],
  ["prompts/list", '{"cursor":1.0}'],
  ["resources/list", '{"cursor":"none"}'],
  ["resources/templates/list", '{"cursor":1.0}'],
];

const ANSWERS = {
  "sampling/createMessage":
    '{"role":"assistant","content":{"type":"text","text":"four","n":1.0},"model":"m","n":9007199254740993}',
  "elicitation/create": '{"action":"decline","n":1.0}',
  "roots/list": '{"roots":[{"uri":"file:///a","name":"a"}]}',
};
/** All that a client can be, as a session says that is shared by several of them. */
const CAPABILITIES = {
  roots: { listChanged: true },
  sampling: { context: {}, tools: {} },
  elicitation: { form: {}, url: {} },
  tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
};

/** Where a text of several lines stood: a stream's event has one line, and the space between tokens says nothing. */
const oneLine = (text: string | undefined) => text?.replaceAll(/\r\n|\r|\n/g, " ");

/** What the everything server says of its own accord: it asks for the roots some time after the start, and tells so. */
const OF_ITS_OWN = /^asked \{\}|Roots updated|roots\/list|list_changed/;
/** What a server surely says about the call before it: what else comes from a pipe doesn't say what it belongs to. */
const ABOUT_A_CALL = /notifications\/progress|notifications\/odd/;

interface Answers {
  hello: RawExchange;
  answers: { step: Step; answer: object }[];
  /** All that the server said beside its answers, wherever it came. */
  said: string[];
}

/** Waits for what `atLeast` was said already, since what belongs to no request comes on a connection of its own. */
async function answersOf(url: string, steps: readonly Step[], fromPipe: boolean, atLeast = 0): Promise<Answers> {
  await using client = await RawMcp.connect(url, CAPABILITIES, ANSWERS);
  const answers: Answers["answers"] = [];
  const said: string[] = [];
  for (const step of steps) {
    const { before, result, error } = await client.request(...step);
    said.push(...before);
    const kept = before.filter((each) => !OF_ITS_OWN.test(each) && (!fromPipe || ABOUT_A_CALL.test(each)));
    answers.push({ step, answer: { before: kept.map(oneLine), result: oneLine(result), error: oneLine(error) } });
  }
  const all = () =>
    [...said, ...client.unasked]
      .filter((each) => !OF_ITS_OWN.test(each) && !/"id":|^asked/.test(each))
      .map((each) => each.replace(/from session [-0-9a-f]+/, ""))
      .sort();
  await until(all, (each) => each.length >= atLeast, { what: "all that is said" });
  return { hello: client.hello, answers, said: all() };
}

/** Each tool's text, of all pages, and what the first page says beside them. */
async function toolsOf(url: string): Promise<{ tools: string[]; beside: (string | undefined)[] }> {
  await using client = await RawMcp.connect(url, CAPABILITIES);
  const tools: string[] = [];
  let page = (await client.request("tools/list")).result ?? "";
  const beside = ["x-unknown", "_meta"].map((name) => memberText(page, name));
  for (;;) {
    const list = memberText(page, "tools") ?? "";
    tools.push(...(elementsOf(list) ?? []).map(({ start, end }) => list.slice(start, end)));
    const cursor = memberText(page, "nextCursor");
    if (cursor === undefined) return { tools, beside };
    page = (await client.request("tools/list", `{"cursor":${cursor}}`)).result ?? "";
  }
}

describe.each([
  ["the everything server", everythingServer, [process.execPath, EVERYTHING, "stdio"], EVERYTHING_STEPS],
  ["a server that misbehaves", misbehavingServer, [process.execPath, MISBEHAVING], ODD_STEPS],
] as const)("%s, forwarded", (_name, start, command, steps) => {
  let server: ServerProcess;
  /** As it is over HTTP, and what of it can be told from a pipe. */
  let direct: Answers;
  let piped: Answers;
  beforeAll(async () => {
    server = await start();
    direct = await answersOf(server.url, steps, false);
    piped = await answersOf(server.url, steps, true);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
  });

  const served = (options: ForwardMcpOptions): Promise<Serving> => new ForwardingEnv(options).serve();

  it.each([
    ["over HTTP", () => ({ url: server.url })],
    ["over stdio", () => ({ command })],
    ["over stdio, shared", () => ({ command, shared: true })],
  ] as const)("%s answers every method as it does directly, character by character", async (how, options) => {
    await using serving = await served(options());
    const expected = how === "over HTTP" ? direct : piped;
    const { hello, answers, said } = await answersOf(
      `${serving.url}/mcp`,
      steps,
      how !== "over HTTP",
      expected.said.length,
    );
    const differences = answers.filter((answer, index) => !isDeepStrictEqual(answer, expected.answers[index]));
    expect(differences).toEqual([]);
    expect(answers).toHaveLength(steps.length);
    expect(said).toEqual(expected.said);
    expect(await toolsOf(`${serving.url}/mcp`)).toEqual(await toolsOf(server.url));
    for (const member of ["capabilities", "instructions"]) {
      expect(memberText(hello.result ?? "", member)).toBe(memberText(expected.hello.result ?? "", member));
    }
  });
});
