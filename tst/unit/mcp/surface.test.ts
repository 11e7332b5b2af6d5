import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { pino } from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { Application } from "../../../src/environment/application.js";
import { prompt, resource } from "../../../src/environment/decorators.js";
import { Environment } from "../../../src/environment/environment.js";
import { PostOffice } from "../../fakes/post-office.js";
import { type Serving, serve } from "../../fakes/serving.js";
import { Shop } from "../../fakes/shop.js";

let office: PostOffice;
let serving: Serving | undefined;
afterEach(async () => {
  await serving?.[Symbol.asyncDispose]();
  serving = undefined;
});

async function open(capabilities: object = {}) {
  office = new PostOffice();
  serving = await serve(office);
  return serving.client({}, capabilities);
}

describe("what an environment serves over MCP", () => {
  it("declares a capability only where something uses it", async () => {
    expect((await open()).getServerCapabilities()).toEqual({
      tools: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      extensions: { "io.modelcontextprotocol/skills": { directoryRead: true } },
      prompts: {},
      completions: {},
      logging: {},
    });
    await using shop = await serve(new Shop());
    expect((await shop.client()).getServerCapabilities()).toEqual({ tools: { listChanged: true }, resources: {} });
    await using nothing = await serve(new (class Nothing extends Environment {})());
    expect((await nothing.client()).getServerCapabilities()).toEqual({});
  });

  it("lists a template, and the resources that it says there are, each with the method's content", async () => {
    const client = await open();
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates).toEqual([
      { uriTemplate: "letters://{letter_id}", name: "letter", description: "A letter.", mimeType: "text/plain" },
      { uriTemplate: "stamps://{+path}", name: "stamp" },
    ]);
    expect((await client.listResources()).resources.map(({ uri, title }) => [uri, title])).toEqual([
      ["skill://posting/SKILL.md", undefined],
      ["skill://posting/a.bin", undefined],
      ["office://door", undefined],
      ["letters://1", "No. 1"],
      ["letters://a%20b", "No. a b"],
    ]);
    expect((await client.readResource({ uri: "letters://a%20b" })).contents).toEqual([
      { uri: "letters://a%20b", mimeType: "text/plain", text: "Dear Bob (to anyone)" },
    ]);
    expect((await client.readResource({ uri: "office://door" })).contents).toEqual([
      { uri: "office://door", mimeType: "image/png", blob: "AQL/" },
    ]);
    expect((await client.readResource({ uri: "stamps://a/b" })).contents).toEqual([
      { uri: "stamps://a/b", text: "a/b" },
      { uri: "stamps://back", blob: "AAE=" },
    ]);
  });

  it("answers resource-not-found for a URI that fits a template but isn't one of its resources", async () => {
    const client = await open();
    for (const uri of ["letters://2", "letters://1/x", "nothing://"]) {
      await expect(client.readResource({ uri })).rejects.toMatchObject({ code: -32002, data: { uri } });
    }
  });

  it("tells those who subscribed that a resource has changed, and everybody that the list has", async () => {
    const client = await open();
    const other = await serving?.client();
    const heard: string[] = [];
    for (const [name, each] of [["client", client] as const, ["other", other] as const]) {
      each?.setNotificationHandler(
        ResourceUpdatedNotificationSchema,
        ({ params }) => void heard.push(`${name} ${params.uri}`),
      );
      each?.setNotificationHandler(ResourceListChangedNotificationSchema, () => void heard.push(`${name} list`));
    }
    await client.subscribeResource({ uri: "letters://1" });
    await expect(client.subscribeResource({ uri: "office://door" })).rejects.toMatchObject({ code: -32002 });
    office.resourceUpdated("letters://1");
    office.resourceUpdated("letters://a%20b");
    office.resourcesChanged();
    await expect.poll(() => heard.length).toBe(3);
    expect(heard.sort()).toEqual(["client letters://1", "client list", "other list"]);
    await client.unsubscribeResource({ uri: "letters://1" });
    office.resourceUpdated("letters://1");
    office.resourcesChanged();
    await expect.poll(() => heard.length).toBe(5);
  });

  it("serves prompts with their arguments, checks what it is given, and completes arguments and parts", async () => {
    const client = await open();
    expect((await client.listPrompts()).prompts).toEqual([
      {
        name: "write",
        description: "Writes a letter.",
        arguments: [
          { name: "to", description: "Whom to.", required: true },
          { name: "tone", required: false },
        ],
      },
      { name: "greet" },
    ]);
    expect((await client.getPrompt({ name: "write", arguments: { to: "Ada" } })).messages).toEqual([
      { role: "user", content: { type: "text", text: "Write a kind letter to Ada." } },
    ]);
    expect((await client.getPrompt({ name: "greet" })).messages.map((message) => message.role)).toEqual([
      "assistant",
      "user",
    ]);
    await expect(client.getPrompt({ name: "write", arguments: {} })).rejects.toMatchObject({ code: -32602 });
    await expect(client.getPrompt({ name: "burn" })).rejects.toMatchObject({ code: -32602 });
    const write = { type: "ref/prompt" as const, name: "write" };
    expect((await client.complete({ ref: write, argument: { name: "to", value: "A" } })).completion).toEqual({
      values: ["Ada", "Adele"],
      total: 2,
      hasMore: false,
    });
    const stern = { ref: write, argument: { name: "to", value: "A" }, context: { arguments: { tone: "stern" } } };
    expect((await client.complete(stern)).completion.values).toEqual([]);
    const letter = { type: "ref/resource" as const, uri: "letters://{letter_id}" };
    expect(
      (await client.complete({ ref: letter, argument: { name: "letter_id", value: "a" } })).completion.values,
    ).toEqual(["a b"]);
  });

  it("passes a tool's blocks on, of each kind", async () => {
    const { content } = await (await open()).callTool({ name: "blocks" });
    expect(content).toEqual([
      { type: "text", text: "words" },
      { type: "image", data: "AQ==", mimeType: "image/png" },
      { type: "audio", data: "AQ==", mimeType: "audio/wav" },
      { type: "resource", resource: { uri: "office://x", mimeType: "text/plain", text: "y" } },
      { type: "resource", resource: { uri: "office://z", blob: "AQ==" } },
      { type: "resource_link", uri: "office://door", name: "door", mimeType: "image/png" },
    ]);
  });

  it("sends a tool's log messages, down to the level that the client asked for", async () => {
    const client = await open();
    const heard: unknown[] = [];
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void heard.push(params));
    await client.callTool({ name: "chatter" });
    expect(heard).toEqual([
      { level: "debug", data: "quiet" },
      { level: "warning", logger: "counter", data: { loud: true } },
    ]);
    expect(await client.setLoggingLevel("warning")).toEqual({});
    await client.callTool({ name: "chatter" });
    expect(heard.slice(2)).toEqual([{ level: "warning", logger: "counter", data: { loud: true } }]);
  });

  it("asks the client's model and its person, and takes no answer that doesn't fit", async () => {
    const client = await open({ sampling: {}, elicitation: {} });
    client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
      role: "assistant",
      content: { type: "text", text: String(params.maxTokens) },
      model: "m",
    }));
    const ages = [{ age: 7 }, { age: -1 }];
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      expect(params).toMatchObject({ message: "Your age?", requestedSchema: { type: "object", required: ["age"] } });
      return { action: "accept", content: ages.shift() as { age: number } };
    });
    const words = async (name: string) => ((await client.callTool({ name })).content as { text: string }[])[0]?.text;
    expect(JSON.parse((await words("think")) ?? "")).toMatchObject({ content: { text: "5" }, model: "m" });
    expect(JSON.parse((await words("ask")) ?? "")).toEqual({ action: "accept", content: { age: 7 } });
    expect(await words("ask")).toMatch(/^delivery_failed: .*age/);
  });

  it("refuses to ask a client that didn't say it can be asked", async () => {
    const { structuredContent, isError } = await (await open()).callTool({ name: "think" });
    expect([isError, structuredContent]).toMatchObject([true, { code: "unsupported", applied: "no" }]);
  });

  it("lets a client go in the middle of a call and gives it the rest when it comes back", async () => {
    const client = await open();
    const seen: number[] = [];
    const call = client.callTool({ name: "slow" }, undefined, {
      onprogress: ({ progress }) => {
        seen.push(progress);
        // The client's own reconnection is under way; what comes in between is kept for it.
        office.release();
      },
    });
    expect((await call).content).toEqual([{ type: "text", text: "done" }]);
    expect(seen).toEqual([1, 2]);
  });

  it("serves the skill that a method returns, with its files", async () => {
    await open();
    expect(await (await fetch(`${serving?.url}/agentenv/ext/skill/get`)).json()).toEqual({
      name: "posting",
      description: "How to post.",
      content: expect.stringContaining("Use a stamp."),
      files: [{ path: "a.bin", bytes: "Bw==" }],
    });
  });

  it("refuses to be built where one URI would have two resources", async () => {
    class Twice extends PostOffice {
      @resource("letters://x")
      other() {
        return "";
      }
    }
    class Overlapping extends PostOffice {
      @resource("{+anything}")
      other() {
        return "";
      }
    }
    class Same extends PostOffice {
      @resource("office://door")
      backDoor() {
        return "";
      }
    }
    const log = pino({ level: "silent" });
    await expect(Application.build(new Same(), log)).rejects.toThrow(
      /"office:\/\/door" is served twice: by the resource door and by the resource backDoor/,
    );
    await expect(Application.build(new Twice(), log)).rejects.toThrow(
      /letters:\/\/\{letter_id\} \(letter\).*letters:\/\/x \(other\)/,
    );
    await expect(Application.build(new Overlapping(), log)).rejects.toThrow(/claimed twice/);
  });
});

describe("a decorator that names a method, or a part, that there isn't", () => {
  it("is refused when the environment is built, with what there is", async () => {
    class Unlisted extends Environment {
      @resource("notes://{id}", { listed: "nowhere" })
      note() {
        return "";
      }
    }
    class Unproposed extends Environment {
      @prompt({ arguments: z.object({ to: z.string() }), complete: { to: "nowhere" } })
      write() {
        return "";
      }
    }
    class OtherPart extends Environment {
      @resource("notes://{id}", { complete: { number: () => ["1"] } })
      note() {
        return "";
      }
    }
    class OtherArgument extends Environment {
      @prompt({ arguments: z.object({ to: z.string() }), complete: { from: () => ["me"] } })
      write() {
        return "";
      }
    }
    class Fixed extends Environment {
      @resource("notes://1", { listed: () => ["notes://1"] })
      note() {
        return "";
      }
    }
    const build = (environment: Environment) => Application.build(environment, pino({ level: "silent" }));
    for (const environment of [new Unlisted(), new Unproposed()]) {
      await expect(build(environment)).rejects.toMatchObject({
        name: "SetupError",
        message: expect.stringMatching(/ names the method "nowhere", which there isn't$/),
      });
    }
    await expect(build(new OtherPart())).rejects.toThrow(/notes:\/\/\{id\} \(note\) has no part "number"/);
    await expect(build(new OtherArgument())).rejects.toThrow(/the prompt "write" has no argument "from"/);
    await expect(build(new Fixed())).rejects.toThrow(/notes:\/\/1 \(note\) is one resource, with nothing to list/);
  });
});
