import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { CreateMessageRequestSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Environment, EnvironmentClient } from "../../../src/index.js";
import { packageRoot } from "../../../src/package-root.js";
import { serve } from "../../fakes/serving.js";
import { EVERYTHING } from "../../harness/everything.js";

const run = promisify(execFile);

/** The TypeScript of the README, each block a module. */
const blocks = [...readFileSync(join(packageRoot, "README.md"), "utf8").matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(
  ([, code = ""]) =>
    code.replace('"agent-env"', '"../../../src/index.js"').replace('"server.js"', JSON.stringify(EVERYTHING)),
);

let folder: string;
beforeAll(() => {
  // Inside the clone, where the test runner and the compiler find the packages.
  mkdirSync(join(packageRoot, ".agentenv/readme"), { recursive: true });
  folder = mkdtempSync(join(packageRoot, ".agentenv/readme/"));
  for (const [index, code] of blocks.entries()) writeFileSync(join(folder, `block${index}.ts`), code);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe("the README's TypeScript", () => {
  it("compiles under the project's own rules", async () => {
    expect(blocks.length).toBeGreaterThanOrEqual(2);
    const config = {
      extends: "../../../tsconfig.json",
      compilerOptions: { noEmit: true, incremental: false },
      include: ["*.ts"],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    const tsc = join(packageRoot, "node_modules/typescript/bin/tsc");
    const { stdout } = await run(process.execPath, [tsc, "-p", folder], { cwd: folder }).catch(
      (thrown: unknown) => thrown as { stdout: string },
    );
    expect(stdout).toBe("");
  });

  it("does what it says: asks, writes, logs, changes a description, samples, lists, completes, and answers a reader", async () => {
    const { Diary } = (await import(join(folder, "block0.ts"))) as { Diary: new () => Environment };
    await using serving = await serve(new Diary());
    const client = await serving.client({}, { sampling: {}, elicitation: {} });
    let sure = false;
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { sure } }));
    client.setRequestHandler(CreateMessageRequestSchema, () => ({
      role: "assistant",
      content: { type: "text", text: "wet" },
      model: "m",
    }));
    const write = () => client.callTool({ name: "write", arguments: { entry: "Sun." } });
    expect((await write()).structuredContent).toMatchObject({ code: "permission_denied", applied: "no" });
    sure = true;
    expect((await write()).structuredContent).toEqual({ number: 2 });
    expect((await client.listTools()).tools[1]?.description).toBe("Sums up 2 entries.");
    expect((await client.callTool({ name: "summary" })).content).toEqual([{ type: "text", text: "wet" }]);
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(["diary://0", "diary://1"]);
    expect((await client.readResource({ uri: "diary://1" })).contents).toMatchObject([{ text: "Sun." }]);
    await expect(client.readResource({ uri: "diary://2" })).rejects.toMatchObject({ code: -32002 });
    const day = { ref: { type: "ref/resource" as const, uri: "diary://{day}" }, argument: { name: "day", value: "1" } };
    expect((await client.complete(day)).completion.values).toEqual(["1"]);
    const { messages } = await client.getPrompt({ name: "start", arguments: { mood: "happy" } });
    expect(messages).toMatchObject([{ role: "user", content: { text: "Begin a happy diary entry." } }]);
    const reader = await serving.client({ "agentenv-role": "reader" });
    expect((await reader.callTool({ name: "write", arguments: { entry: "x" } })).isError).toBe(true);
    await new EnvironmentClient(serving.url).resetData();
    expect((await client.listResources()).resources).toHaveLength(1);
  });

  it("serves less where hooks leave something out", async () => {
    const { FinishedDiary } = (await import(join(folder, "block0.ts"))) as { FinishedDiary: new () => Environment };
    await using serving = await serve(new FinishedDiary());
    const { capabilities } = await new EnvironmentClient(serving.url).card();
    expect(capabilities.tools?.map(({ name }) => name)).toEqual(["summary"]);
    expect(capabilities.operations).toEqual([]);
    await expect(new EnvironmentClient(serving.url).resetData()).rejects.toMatchObject({ applied: "no" });
  });

  it("forwards a whole server, with tools of something else beside it", async () => {
    const { Everything } = (await import(join(folder, "block1.ts"))) as { Everything: new () => Environment };
    await using serving = await serve(new Everything());
    const client = await serving.client();
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["weather", "echo", "get-sum"]));
    const words = async (name: string, args: object) =>
      (await client.callTool({ name, arguments: { ...args } })).content as { text: string }[];
    expect(await words("weather", { city: "Kiel" })).toMatchObject([{ text: "Rain in Kiel." }]);
    expect(await words("echo", { message: "hi" })).toMatchObject([{ text: "Echo: hi" }]);
  });
});
