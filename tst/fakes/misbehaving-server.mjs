/**
 * An MCP server that keeps to the letter of JSON and to little else: unknown keys in every object, numbers that no double
 * holds, spellings that JSON.stringify wouldn't choose, empty results, errors of each kind. Over stdio, or with a port as
 * its argument over streamable HTTP.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const ODD =
  '"x-unknown": {"big":9007199254740993,"huge" : 123456789012345678901234567890,"one":1.0,"minus":-0,"tiny":1e-400, "\\u0061":"\\u00e9\\/", "10":1, "2":2}';

const RESULTS = {
  initialize: `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true,"n":1.0},"resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{"odd":1.50},"experimental":{"x":{"y":-0}}},"serverInfo":{"name":"odd","version":"1",${ODD}},"instructions":"Mind the numbers.",${ODD}}`,
  ping: "{}",
  "logging/setLevel": `{ ${ODD} }`,
  "resources/list": `{"resources":[{"uri":"odd://1","name":"1",${ODD}},{"uri":"odd://2","name":"2","size":1.0}],${ODD}}`,
  "resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"odd://{?q}","name":"t",${ODD}}]}`,
  "resources/read": `{"contents":[{"uri":"odd://1","text":"a\\u2028b",${ODD}}],${ODD}}`,
  "resources/subscribe": "{}",
  "resources/unsubscribe": `{${ODD}}`,
  "prompts/list": `{"prompts":[{"name":"p","arguments":[{"name":"a",${ODD}}],${ODD}}],"_meta":{${ODD}}}`,
  "prompts/get": `{"messages":[{"role":"user","content":{"type":"odd",${ODD}},${ODD}}],${ODD}}`,
  "completion/complete": `{"completion":{"values":[],"total":9007199254740993,${ODD}},${ODD}}`,
  "odd/method": `{"anything":[1.0,-0,{${ODD}}]}`,
};

const PAGES = [
  `{"tools":[{"name":"odd","inputSchema":{"type":"object","x-n":9007199254740993},"annotations":{"readOnlyHint":true,${ODD}},${ODD}}],"nextCursor":"page\\u0020two",${ODD}}`,
  `{"tools":[{"name":"second","inputSchema":{"type":"object"},"_meta":{${ODD}}}]}`,
];

const CALLS = {
  empty: "{}",
  nothing: "null",
  content: `{"content":[]}`,
  blocks: `{"content":[{"type":"text","text":"t",${ODD}},{"type":"odd","n":1.0},{"type":"image","data":"AA==","mimeType":"image/png"}],"isError":false,"structuredContent":{"n":-0,${ODD}},"_meta":{${ODD}},${ODD}}`,
  failed: `{"content":[{"type":"text","text":"no"}],"isError":true,${ODD}}`,
  spread: '{\n  "content": [\r\n    ]\n}',
};

const ERRORS = {
  invalid: `{"code":-32602,"message":"no \\u0041","data":{${ODD}},${ODD}}`,
  own: `{"code":9007199254740993,"message":"","data":1.0}`,
  fraction: `{"code":-1.5,"message":"half","data":null}`,
  bare: `{"code":1}`,
};

const asked = new Map();

/** What the lists hold once a call has changed them. */
const RELISTED = {
  "tools/list": `{"tools":[{"name":"odd","inputSchema":{"type":"object"},"description":"new"},{"name":"third","inputSchema":{"type":"object"}}]}`,
  "prompts/list": `{"prompts":[{"name":"p"},{"name":"q",${ODD}}]}`,
  "resources/list": `{"resources":[{"uri":"odd://3","name":"3"}]}`,
};
let relisted = false;

/** Where each message that comes in is noted, and whether a process of its own is started: for those who count. */
const { ODD_LOG, ODD_CHILD } = process.env;
if (ODD_CHILD !== undefined) spawn("sleep", ["1000"], { stdio: "ignore" });

/** The answers to one message, as JSON texts. */
function answer(text) {
  if (ODD_LOG !== undefined) appendFileSync(ODD_LOG, `${text}\n`);
  const { id, method, params = {} } = JSON.parse(text);
  if (method === undefined) asked.get(id)?.(text.slice(text.indexOf('"result"') + 9, text.lastIndexOf("}")));
  if (id === undefined || method === undefined) return [];
  const idText = JSON.stringify(id);
  const result = (json) => `{"jsonrpc":"2.0","id":${idText},"result":${json}}`;
  const error = (json) => `{"id":${idText}, "error":${json}, "jsonrpc":"2.0"}`;
  if (relisted && method in RELISTED) return [result(RELISTED[method])];
  if (method === "tools/list") return [result(PAGES[params.cursor === undefined ? 0 : 1])];
  if (method === "tools/call") {
    const { kind } = params.arguments ?? {};
    if (kind in ERRORS) return [error(ERRORS[kind])];
    if (kind === "told") {
      return [
        `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{${ODD}}},${ODD}}`,
        `{"jsonrpc":"2.0","method":"notifications/odd","params":{${ODD}}}`,
        result(CALLS.content),
      ];
    }
    if (kind === "no JSON") return ["[}"];
    if (kind === "relist" || kind === "unlist") {
      relisted = kind === "relist";
      RELISTED["tools/list"] = params.arguments.tools ?? RELISTED["tools/list"];
      const changed = ["tools", "prompts", "resources"].map(
        (list) => `{"jsonrpc":"2.0","method":"notifications/${list}/list_changed"}`,
      );
      return [...changed, result(CALLS.content)];
    }
    if (kind === "later") {
      setTimeout(() => process.stdout.write(`${result(CALLS.content)}\n`), params.arguments.ms);
      return [];
    }
    if (kind === "ask") {
      asked.set("q1", (reply) => process.stdout.write(`${result(`{"content":[],"reply":${reply}}`)}\n`));
      return ['{"jsonrpc":"2.0","id":"q1","method":"sampling/createMessage","params":{"n":9007199254740993}}'];
    }
    if (kind === "forget") {
      const question =
        '{"jsonrpc":"2.0","id":"q2","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"_meta":{"progressToken":"p"}}}';
      setTimeout(() => {
        process.stdout.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q2"}}\n');
        process.stdout.write(`${result(CALLS.content)}\n`);
      }, params.arguments.ms);
      return [question];
    }
    if (kind === "crash") process.exit(3);
    if (kind === "silent") return [];
    return [result(CALLS[kind] ?? `{"got":${text.slice(text.indexOf('"params"') + 9, text.lastIndexOf("}"))}}`)];
  }
  return [RESULTS[method] === undefined ? error(`{"code":-32601,"message":"What?",${ODD}}`) : result(RESULTS[method])];
}

const port = process.argv[2];
if (port === undefined) {
  process.stdout.write("this line is no JSON\n");
  createInterface({ input: process.stdin }).on("line", (line) => {
    for (const each of answer(line)) process.stdout.write(`${each.replaceAll(/[\r\n]+/g, " ")}\n`);
  });
} else {
  const server = createServer((request, response) => {
    if (request.method !== "POST") return response.writeHead(405).end();
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const answers = answer(Buffer.concat(chunks).toString());
      const session = { "mcp-session-id": request.headers["mcp-session-id"] ?? randomUUID() };
      if (answers.length === 0) return response.writeHead(202, session).end();
      if (answers.length === 1) {
        return response.writeHead(200, { ...session, "content-type": "application/json" }).end(answers[0]);
      }
      response.writeHead(200, { ...session, "content-type": "text/event-stream" });
      for (const each of answers) response.write(`data: ${each}\n\n`);
      response.end();
    });
  });
  server.listen(Number(port), "127.0.0.1", () => process.stdout.write(`port ${server.address().port}\n`));
}
