import { z } from "zod";
import { audio, embeddedResource, image, resourceLink, text } from "../../src/environment/content.js";
import type { ToolContext } from "../../src/environment/context.js";
import { agentSkill, prompt, resource, tool } from "../../src/environment/decorators.js";
import { Environment } from "../../src/environment/environment.js";
import type { ResourceContext } from "../../src/environment/resource.js";

/** An environment with all of MCP that isn't a plain tool: templates, prompts, completion, logging, asking the client. */
export class PostOffice extends Environment {
  readonly letters = new Map([
    ["1", "Dear Ada"],
    ["a b", "Dear Bob"],
  ]);

  override get logs(): boolean {
    return true;
  }

  @resource("letters://{letter_id}", {
    description: "A letter.",
    mimeType: "text/plain",
    subscribe: true,
    listed(this: PostOffice) {
      return [...this.letters.keys()].map((id) => ({ uri: `letters://${encodeURIComponent(id)}`, title: `No. ${id}` }));
    },
    complete: { letter_id: "lettersLike" },
  })
  letter({ letter_id }: { letter_id: string }, { role }: ResourceContext): string {
    return `${this.letters.get(letter_id)} (to ${role ?? "anyone"})`;
  }

  lettersLike(value: string): string[] {
    return [...this.letters.keys()].filter((id) => id.startsWith(value));
  }

  @resource("stamps://{+path}")
  stamp({ path }: { path: string }) {
    return [{ text: path }, { uri: "stamps://back", blob: "AAE=" }];
  }

  @resource("office://door", { mimeType: "image/png" })
  door(): Uint8Array {
    return new Uint8Array([1, 2, 255]);
  }

  @prompt({
    description: "Writes a letter.",
    arguments: z.object({ to: z.string().describe("Whom to."), tone: z.enum(["kind", "stern"]).optional() }),
    complete: { to: (value, given) => (given.tone === "stern" ? [] : [`${value}da`, `${value}dele`]) },
  })
  write({ to, tone = "kind" }: { to: string; tone?: string | undefined }) {
    return `Write a ${tone} letter to ${to}.`;
  }

  @prompt()
  greet() {
    return [
      { role: "assistant" as const, content: text("Hello.") },
      { role: "user" as const, content: text("Hi.") },
    ];
  }

  @agentSkill
  skilled() {
    return [
      "posting",
      "---\nname: posting\ndescription: How to post.\n---\nUse a stamp.",
      { "a.bin": new Uint8Array([7]) },
    ] as const;
  }

  @tool({ description: "Answers with a block of each kind.", input: z.object({}) })
  blocks() {
    return [
      text("words"),
      image(new Uint8Array([1]), "image/png"),
      audio("AQ==", "audio/wav"),
      embeddedResource("office://x", "y", "text/plain"),
      embeddedResource("office://z", new Uint8Array([1])),
      resourceLink("office://door", "door", { mimeType: "image/png" }),
    ];
  }

  @tool({ description: "Logs at each level.", input: z.object({}) })
  chatter(_args: object, { log }: ToolContext) {
    log("debug", "quiet");
    log("warning", { loud: true }, "counter");
  }

  @tool({ description: "Asks the client's model.", input: z.object({}) })
  async think(_args: object, { sample }: ToolContext) {
    return sample({ messages: [{ role: "user", content: text("2+2") }], maxTokens: 5 });
  }

  @tool({ description: "Asks the person.", input: z.object({}) })
  async ask(_args: object, { elicit }: ToolContext) {
    return elicit("Your age?", z.object({ age: z.int().min(0) }));
  }

  @tool({ description: "Lets the connection go, then answers.", input: z.object({}) })
  async slow(_args: object, { detach, progress }: ToolContext) {
    progress(1);
    detach(10);
    await this.released;
    progress(2);
    return "done";
  }

  release: () => void = () => {};
  readonly released = new Promise<void>((resolve) => {
    this.release = resolve;
  });
}
