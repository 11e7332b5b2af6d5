import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentenv, agentenvMain, type Computer, type Exit, startComputer } from "../../harness/computer.js";

const AGENT = "agent-token-0123456789";
const FRAMEWORK = "framework-token-0123456789";

let folder: string;
let computer: Computer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "by-hand-"));
  writeFileSync(join(folder, "tokens"), `agent:${AGENT}\nframework:${FRAMEWORK}\n`);
  computer = await startComputer("bundles/desk", ["--tokens", join(folder, "tokens")]);
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

function run(command: string, args: string[], token: string | undefined = FRAMEWORK): Promise<Exit> {
  const environment = { AGENTENV_TOKEN: token };
  return agentenv([command, computer.url, ...args], environment).exited;
}

function expectFailure(exit: Exit, ...says: RegExp[]): void {
  for (const each of says) expect(exit.stderr).toMatch(each);
  expect(exit.stderr).not.toMatch(/fault of agentenv|^\s+at .*:\d+/m);
  expect(exit.code).toBe(1);
}

describe("a person at a shell", () => {
  it("sees that it is ready, its card, its tools and a screenshot, as text and as JSON", async () => {
    expect((await run("ready", [])).stdout).toMatch(/^ok +display: 1280x800[\s\S]*\nready\n$/);
    expect(JSON.parse((await run("ready", ["--json"])).stdout)).toMatchObject({ ready: true });
    expect((await run("card", [])).stdout).toMatch(/^desk +AgentEnv protocol 1\.0[\s\S]*urn:agentenv:computer\/v1/);
    expect(JSON.parse((await run("card", ["--json"])).stdout)).toMatchObject({ name: "desk", protocolVersion: "1.0" });
    expect((await run("tools", [])).stdout).toMatch(/computer_screenshot[\s\S]*\n73 tools\n$/);
    // A sentence that is too long is seen to be cut.
    expect((await run("tools", [])).stdout).toMatch(/^get_window_state +.{90,}…$/m);
    expect(JSON.parse((await run("tools", ["--json"])).stdout)).toHaveLength(73);
    const png = join(folder, "desk.png");
    expect(JSON.parse((await run("shot", ["--out", png, "--json"])).stdout)).toMatchObject({ width: 1280, file: png });
    expect(readFileSync(png).subarray(1, 4).toString()).toBe("PNG");
    expect((await run("shot", ["--out", join(folder, "desk.jpg")])).code).toBe(0);
    expect(readFileSync(join(folder, "desk.jpg")).subarray(0, 2)).toEqual(Buffer.from([0xff, 0xd8]));
  });

  it("calls a tool with a point and no frame, which is one of a screenshot taken then", async () => {
    const clicked = await run("call", ["computer_click", '{"x": 1200, "y": 700}']);
    expect([clicked.code, clicked.stdout]).toEqual([0, expect.stringContaining('"applied": "yes"')]);
  });

  it("is told of a refusal by the exit code, with the code and hint of the tool", async () => {
    const refused = await run("call", ["computer_key", '{"keys": ["ctrl", "s"]}', "--json"]);
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout).structuredContent).toMatchObject({
      code: "invalid_argument",
      hint: expect.stringContaining("Control"),
    });
  });

  it("is told what to do about a tool, a file, an argument and an address that aren't right", async () => {
    expectFailure(await run("call", ["computer_clck"]), /no tool "computer_clck"/, /did you mean computer_click/);
    expectFailure(await run("shot", ["--out", "/nowhere/at/all.png"]), /can't be written/, /folder/);
    expectFailure(await agentenv(["card", "http://127.0.0.1:9"]).exited, /127\.0\.0\.1:9/, /npm start/);
    const argument = await run("call", ["computer_click", "{x: 1}"]);
    expect([argument.code, argument.stderr]).toEqual([2, expect.stringContaining("not a JSON object")]);
    const url = await agentenv(["card", "desk"]).exited;
    expect([url.code, url.stderr]).toEqual([2, expect.stringContaining("http")]);
    // What a path is served by isn't the environment at the address: a gateway's child would be mistaken for the gateway.
    const child = await agentenv(["tools", `${computer.url}/children/shop`], { AGENTENV_TOKEN: FRAMEWORK }).exited;
    expect([child.code, child.stdout, child.stderr]).toEqual([
      2,
      "",
      expect.stringContaining("without /children/shop"),
    ]);
    for (const path of ["/", "/mcp", "/.well-known/agent-env.json"]) {
      const exit = await agentenv(["card", `${computer.url}${path}`], { AGENTENV_TOKEN: FRAMEWORK }).exited;
      expect([exit.code, exit.stdout]).toEqual([0, expect.stringContaining("desk")]);
    }
  });

  it("is told about a token that is missing, wrong or of too small a scope", async () => {
    expectFailure(await run("card", [], ""), /asks for a bearer token/, /--token-file/);
    expectFailure(await run("tools", [], "wrong-token-0123456789"), /asks for a bearer token/, /AGENTENV_TOKEN/);
    const wrongScope = /refuses the call: this needs a bearer token of the scope "framework"/;
    expectFailure(await run("card", [], AGENT), wrongScope, /--token-file/);
    expectFailure(await run("compare", [], AGENT), wrongScope, /--token-file/);
    const probed = await run("probe", [], AGENT);
    expect([probed.code, probed.stdout, probed.stderr]).toEqual([2, "", expect.stringMatching(wrongScope)]);
    expect((await run("tools", [], AGENT)).code).toBe(0);
  });

  it("is told what a token file has to hold", async () => {
    const from = (file: string, command = "ready") =>
      agentenv([command, computer.url, "--token-file", file], { AGENTENV_TOKEN: "" }).exited;
    const hint = /a file that holds one token and nothing else/;
    expectFailure(await from(join(folder, "nope")), /token file .*nope can't be read: ENOENT/, hint);
    const whole = await from(join(folder, "tokens"), "tools");
    expectFailure(whole, /tokens holds 2 lines of scope:token; it takes one bare token/, hint);
    expect(whole.stderr).not.toContain(AGENT);
    writeFileSync(join(folder, "bare"), `${FRAMEWORK}\n`);
    expect((await from(join(folder, "bare"))).code).toBe(0);
  });

  it("may close the pipe when it has seen enough", () => {
    const script = `set -o pipefail; "$0" "$1" tools ${computer.url} --json | head -c 10`;
    const environment = { ...process.env, AGENTENV_TOKEN: FRAMEWORK };
    const output = execFileSync("bash", ["-c", script, process.execPath, agentenvMain], {
      env: environment,
      encoding: "utf8",
    });
    expect(output).toHaveLength(10);
  });

  it("finds help with an example for every command, and each in one line of the list", async () => {
    const help = (await agentenv(["--help"]).exited).stdout;
    const lines = help.split("\n");
    expect(lines.filter((line) => line.length > 140)).toEqual([]);
    const commands = [...help.matchAll(/^ {2}(\w+)(?: \[| <| {2})/gm)].map(([, name]) => name as string);
    expect(commands).toEqual(expect.arrayContaining(["up", "ready", "card", "tools", "call", "shot", "driver"]));
    for (const command of commands.filter((name) => name !== "help")) {
      const { code, stdout } = await agentenv([command, "--help"]).exited;
      expect([command, code, stdout]).toEqual([command, 0, expect.stringMatching(/Examples?:\n +\$ agentenv /)]);
    }
  });
});
