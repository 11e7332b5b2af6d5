import { createHash } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { agentSkill, resource, tool } from "../../../src/environment/decorators.js";
import { Environment } from "../../../src/environment/environment.js";
import type { ForwardedServer } from "../../../src/environment/forwarded-server.js";
import { Gateway } from "../../../src/http/gateway.js";
import { McpClient } from "../../../src/mcp/client.js";
import { forwardMcp } from "../../../src/mcp/forward/forward-mcp.js";
import type { SkillGetResult } from "../../../src/protocol/skill.js";
import { fetchSkill } from "../../../src/skills/fetch-skill.js";
import type { Skill } from "../../../src/skills/skill.js";
import { PostOffice } from "../../fakes/post-office.js";
import { type Serving, serve } from "../../fakes/serving.js";
import { Shop } from "../../fakes/shop.js";
import { largeSkill, skillOf, skillText } from "../../harness/skill-folder.js";

interface Entry {
  uri: string;
  frontmatter: { name: string };
  resources: { uri: string; digest: string; size: number }[];
}

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

async function start(environment: Environment, options: Parameters<typeof serve>[1] = {}): Promise<Serving> {
  const serving = await serve(environment, options);
  open.push(serving);
  return serving;
}

async function connect(url: string, role?: string): Promise<McpClient> {
  const client = await McpClient.connect(url, role === undefined ? {} : { role });
  open.push({ [Symbol.asyncDispose]: () => client.close() });
  return client;
}

async function listed(client: McpClient, params: object = {}): Promise<Entry[]> {
  return (await client.request("skills/list", params as Record<string, unknown>)).skills as Entry[];
}

/** What a skill's files are, by their list over MCP: each read, its bytes held to digest and size. */
async function readAll(client: McpClient, entry: Entry): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  for (const { uri, digest, size } of entry.resources) {
    const { contents } = await client.request("resources/read", { uri });
    const [content] = contents as [{ text?: string; blob?: string }];
    const bytes = content.text === undefined ? Buffer.from(content.blob ?? "", "base64") : Buffer.from(content.text);
    expect([bytes.length, `sha256:${createHash("sha256").update(bytes).digest("hex")}`], uri).toEqual([size, digest]);
    files.set(uri, bytes);
  }
  return files;
}

/** An environment that has tools, and a skill with files of every kind. */
class Kitchen extends Environment {
  @tool({ description: "Cuts.", input: z.object({}) })
  cut() {
    return "cut";
  }

  @tool({ description: "Cooks.", input: z.object({}) })
  cook() {
    return "cooked";
  }

  @agentSkill
  cooking() {
    const md =
      "---\nname: cooking\ndescription: How to cook.\nmetadata:\n  level: easy\nextra: [1, {a: b}]\n---\n# Cook\n";
    const files = {
      "deep/er/notes.txt": "\u{feff}Salt.\r\n",
      "deep/table.csv": "a,b\n",
      "caf\u00e9 1.md": "Coffee.\n",
      "knife.png": new Uint8Array([0x89, 0x50, 0xff]),
      "run.sh": "#!/bin/sh\n",
    };
    return ["cooking", md, files] as const;
  }

  override skillFor(skill: SkillGetResult, allows: (tool: string) => boolean): SkillGetResult {
    const known = ["cut", "cook"].filter(allows).map((name) => `- \`${name}\`\n`);
    return { ...skill, content: `${skill.content}${known.join("")}` };
  }
}

describe("an environment's skill over MCP", () => {
  it("is listed with its frontmatter as written and all of its files, each of which has the digest and size that it is listed with", async () => {
    const client = await connect((await start(new Kitchen())).url);
    const [entry, ...others] = await listed(client);
    expect(others).toEqual([]);
    expect(entry).toMatchObject({
      uri: "skill://cooking/SKILL.md",
      frontmatter: {
        name: "cooking",
        description: "How to cook.",
        metadata: { level: "easy" },
        extra: [1, { a: "b" }],
      },
    });
    const files = await readAll(client, entry as Entry);
    expect([...files.keys()]).toEqual([
      "skill://cooking/SKILL.md",
      "skill://cooking/caf%C3%A9%201.md",
      "skill://cooking/deep/er/notes.txt",
      "skill://cooking/deep/table.csv",
      "skill://cooking/knife.png",
      "skill://cooking/run.sh",
    ]);
    expect(await client.request("skills/get", { uri: "skill://cooking/SKILL.md" })).toEqual({ skill: entry });
  });

  it("has its files among the resources, its SKILL.md first and named as the skill is", async () => {
    const client = await connect((await start(new Kitchen())).url);
    const { resources } = await client.request("resources/list", {});
    expect(resources).toMatchObject([
      { uri: "skill://cooking/SKILL.md", name: "cooking", description: "How to cook.", mimeType: "text/markdown" },
      { name: "caf\u00e9 1.md", mimeType: "text/markdown", size: 8 },
      { name: "deep/er/notes.txt", mimeType: "text/plain" },
      { name: "deep/table.csv", mimeType: "text/csv" },
      { name: "knife.png", mimeType: "image/png", size: 3 },
      { name: "run.sh", mimeType: "text/plain" },
    ]);
  });

  it("has folders that can be read, each with what is directly in it", async () => {
    const client = await connect((await start(new Kitchen())).url);
    const children = async (uri: string) =>
      (
        (await client.request("resources/directory/read", { uri })).resources as { uri: string; mimeType: string }[]
      ).map((each) => [each.uri.slice("skill://cooking/".length), each.mimeType]);
    expect(await children("skill://cooking")).toEqual([
      ["SKILL.md", "text/markdown"],
      ["caf%C3%A9%201.md", "text/markdown"],
      ["deep", "inode/directory"],
      ["knife.png", "image/png"],
      ["run.sh", "text/plain"],
    ]);
    expect(await children("skill://cooking/deep")).toEqual([
      ["deep/er", "inode/directory"],
      ["deep/table.csv", "text/csv"],
    ]);
    expect(await children("skill://cooking/deep/er")).toEqual([["deep/er/notes.txt", "text/plain"]]);
  });

  it("answers -32602 to what there isn't: a skill, a file, a folder, a page, and to a request without a URI", async () => {
    const client = await connect((await start(new Kitchen())).url);
    for (const [method, params] of [
      ["skills/get", { uri: "skill://cooking/deep/SKILL.md" }],
      ["skills/get", { uri: "skill://cooking" }],
      ["skills/get", {}],
      ["skills/list", { cursor: "0" }],
      ["skills/list", { cursor: "x" }],
      ["skills/list", { cursor: 1 }],
      ["resources/read", { uri: "skill://cooking/none.md" }],
      ["resources/read", { uri: "skill://cooking/../cooking/SKILL.md" }],
      ["resources/directory/read", { uri: "skill://cooking/SKILL.md" }],
      ["resources/directory/read", { uri: "skill://cooking/" }],
      ["resources/directory/read", { uri: "skill://none" }],
      ["resources/directory/read", { uri: "skill://cooking", cursor: "1" }],
      ["resources/directory/read", {}],
    ] as const) {
      await expect(client.request(method, params), `${method} ${JSON.stringify(params)}`).rejects.toMatchObject({
        code: -32602,
      });
    }
  });

  it("is declared, with its methods, only where there is one", async () => {
    const bare = await start(new Shop());
    expect((await bare.client()).getServerCapabilities()).not.toHaveProperty("extensions");
    const client = await connect(bare.url);
    for (const method of ["skills/list", "skills/get", "resources/directory/read"]) {
      await expect(client.request(method, { uri: "skill://x" })).rejects.toMatchObject({ code: -32601 });
    }
    const served = await (await start(new Kitchen())).client();
    expect(served.getServerCapabilities()).toMatchObject({
      resources: {},
      extensions: { "io.modelcontextprotocol/skills": { directoryRead: true } },
    });
  });

  it("is what skill/v1 answers: one list of files gives both the same digest", async () => {
    const serving = await start(new Kitchen());
    const client = await connect(serving.url);
    const [entry] = (await listed(client)) as [Entry];
    const over = skillOf(
      Object.fromEntries(
        [...(await readAll(client, entry))].map(([uri, bytes]) => [
          decodeURIComponent(uri.slice("skill://cooking/".length)),
          bytes,
        ]),
      ),
    );
    expect(over.digest).toBe((await fetchSkill(serving.url)).digest);
  });

  it("says to a role what its tools are, over MCP and by skill/v1, and to another role something else after a change", async () => {
    const serving = await start(new Kitchen(), { tools: { roles: { baker: { hide: ["cut"] } } } });
    const [any, baker, guest] = [
      await connect(serving.url),
      await connect(serving.url, "baker"),
      await connect(serving.url, "guest"),
    ];
    const told = async (client: McpClient) => {
      const [entry] = (await listed(client)) as [Entry];
      return String((await readAll(client, entry)).get("skill://cooking/SKILL.md")).split("# Cook\n")[1];
    };
    expect(await Promise.all([any, baker, guest].map(told))).toEqual([
      "- `cut`\n- `cook`\n",
      "- `cook`\n",
      "- `cut`\n- `cook`\n",
    ]);
    await fetch(`${serving.url}/tools/disable`, { method: "POST", body: '{"role": "guest", "tools": ["cook"]}' });
    expect(await Promise.all([any, baker, guest].map(told))).toEqual([
      "- `cut`\n- `cook`\n",
      "- `cook`\n",
      "- `cut`\n",
    ]);
    const get = await fetch(`${serving.url}/agentenv/ext/skill/get`, { headers: { "agentenv-role": "guest" } });
    expect(((await get.json()) as SkillGetResult).content.split("# Cook\n")[1]).toBe("- `cut`\n");
  });

  it("is refused at the start where it breaks the rules, or its address is taken", async () => {
    class Wrong extends Environment {
      constructor(private readonly answer: readonly [string, string, Record<string, string>?]) {
        super();
      }
      @agentSkill
      wrong() {
        return this.answer;
      }
    }
    await expect(serve(new Wrong(["other", skillText("one")]))).rejects.toThrow(/"other".*names it "one"/);
    await expect(serve(new Wrong(["one", "# no frontmatter"]))).rejects.toThrow(/doesn't begin with YAML/);
    await expect(serve(new Wrong(["one", skillText("one"), { "../x": "" }]))).rejects.toThrow(
      /\.\.\/x leaves its folder/,
    );
    class Taken extends Kitchen {
      @resource("skill://cooking/SKILL.md")
      mine() {
        return "mine";
      }
    }
    await expect(serve(new Taken())).rejects.toThrow(/the skill "cooking" is served twice/);
  });
});

describe("skills that are included", () => {
  const included = [skillOf({ "SKILL.md": skillText("knots"), "how/bowline.md": "Loop.\n" })];

  it("are served beside the environment's own, and also where it has none", async () => {
    for (const [environment, names] of [
      [new Kitchen(), ["cooking", "knots"]],
      [new Shop(), ["knots"]],
    ] as const) {
      const client = await connect((await start(environment, { skills: included })).url);
      const entries = await listed(client);
      expect(entries.map(({ frontmatter }) => frontmatter.name)).toEqual(names);
      for (const entry of entries) await readAll(client, entry);
      const { resources } = await client.request("resources/directory/read", { uri: "skill://knots" });
      expect(resources).toMatchObject([{ name: "knots" }, { name: "how", mimeType: "inode/directory" }]);
    }
  });

  it("are refused where one has the name of the environment's own", async () => {
    const skills = [skillOf({ "SKILL.md": skillText("cooking") })];
    await expect(serve(new Kitchen(), { skills })).rejects.toThrow(/the skill "cooking" is served twice/);
  });

  it("come in pages where they are many and large, no entry split and each once", async () => {
    const skills = Array.from({ length: 30 }, (_, index): Skill => largeSkill(`large-${index}`, 511, 10));
    const client = await connect((await start(new Kitchen(), { skills })).url);
    const entries: Entry[] = [];
    let pages = 0;
    let cursor: unknown;
    do {
      const page = await client.request("skills/list", cursor === undefined ? {} : { cursor });
      entries.push(...(page.skills as Entry[]));
      cursor = page.nextCursor;
      pages += 1;
    } while (cursor !== undefined);
    expect(pages).toBeGreaterThan(1);
    expect(entries.map(({ frontmatter }) => frontmatter.name)).toEqual(["cooking", ...skills.map(({ name }) => name)]);
    expect(entries.slice(1).every(({ resources }) => resources.length === 512)).toBe(true);
  });
});

describe("the skills of servers behind", () => {
  class Forwards extends Environment {
    readonly #servers: ForwardedServer[];
    constructor(...urls: string[]) {
      super();
      this.#servers = urls.map((url) => forwardMcp({ url: `${url}/mcp` }));
    }
    override forwardedServers() {
      return this.#servers;
    }
  }

  class Own extends Forwards {
    override skill(): SkillGetResult {
      return { name: "own", description: "x", content: skillText("own"), files: [] };
    }
  }

  it("stand beside ours as they are, with their own answers to what is theirs or nobody's", async () => {
    const behind = await start(new Kitchen());
    const [theirs] = (await listed(await connect(behind.url))) as [Entry];
    const client = await connect((await start(new Own(behind.url))).url);
    expect(await listed(client)).toEqual([expect.objectContaining({ uri: "skill://own/SKILL.md" }), theirs]);
    expect(await client.request("skills/get", { uri: theirs.uri })).toEqual({ skill: theirs });
    await readAll(client, theirs);
    const { resources } = await client.request("resources/directory/read", { uri: "skill://cooking/deep" });
    expect(resources).toHaveLength(2);
    for (const method of ["skills/get", "resources/directory/read"]) {
      await expect(client.request(method, { uri: "skill://none/SKILL.md" })).rejects.toMatchObject({ code: -32602 });
    }
  });

  it("are joined by a gateway of several environments", async () => {
    const [kitchen, office] = [await start(new Kitchen()), await start(new PostOffice())];
    const gateway = new Gateway({ kitchen: { url: kitchen.url }, office: { url: office.url } });
    const client = await connect((await start(gateway)).url);
    const entries = await listed(client);
    expect(entries.map(({ frontmatter }) => frontmatter.name)).toEqual(["cooking", "posting"]);
    for (const entry of entries) {
      await readAll(client, entry);
      expect(await client.request("skills/get", { uri: entry.uri })).toEqual({ skill: entry });
    }
    expect((await client.request("resources/directory/read", { uri: "skill://posting" })).resources).toHaveLength(2);
    await expect(client.request("skills/get", { uri: "skill://none/SKILL.md" })).rejects.toMatchObject({
      code: -32602,
    });
  });
});
