import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import {
  audio,
  Environment,
  embeddedResource,
  image,
  prompt,
  resource,
  type ToolContext,
  text,
  tool,
} from "../../src/index.js";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const address = z
  .object({ street: z.string().optional(), city: z.string().optional() })
  .meta({ id: "address", $anchor: "address" });
const nothing = z.object({});

/** What MCP's conformance suite asks of a server, written with the public surface alone. */
export class ConformanceEnv extends Environment {
  override get logs(): boolean {
    return true;
  }

  @tool({ name: "test_simple_text", description: "Answers with text.", input: nothing })
  simpleText() {
    return "This is a simple text response for testing.";
  }

  @tool({ name: "test_image_content", description: "Answers with an image.", input: nothing })
  imageContent() {
    return [image(PIXEL, "image/png")];
  }

  @tool({ name: "test_audio_content", description: "Answers with a sound.", input: nothing })
  audioContent() {
    return [audio(SILENCE, "audio/wav")];
  }

  @tool({ name: "test_embedded_resource", description: "Answers with a resource.", input: nothing })
  embedded() {
    return [embeddedResource("test://embedded-resource", "This is an embedded resource content.", "text/plain")];
  }

  @tool({ name: "test_multiple_content_types", description: "Answers with blocks of several kinds.", input: nothing })
  mixed() {
    return [
      text("Multiple content types test:"),
      image(PIXEL, "image/png"),
      embeddedResource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ];
  }

  @tool({ name: "test_tool_with_logging", description: "Logs while it works.", input: nothing })
  async logging(_args: object, { log }: ToolContext) {
    log("info", "Tool execution started");
    await sleep(50);
    log("info", "Tool processing data");
    await sleep(50);
    log("info", "Tool execution completed");
    return "logged";
  }

  @tool({ name: "test_tool_with_progress", description: "Reports progress.", input: nothing })
  async progress(_args: object, { progress }: ToolContext) {
    progress(0, 100);
    await sleep(50);
    progress(50, 100);
    await sleep(50);
    progress(100, 100);
    return "done";
  }

  @tool({ name: "test_error_handling", description: "Fails.", input: nothing })
  fails() {
    return { isError: true, content: [text("This tool intentionally returns an error for testing")] };
  }

  @tool({ name: "test_sampling", description: "Asks the client's model.", input: z.object({ prompt: z.string() }) })
  async sampling({ prompt: words }: { prompt: string }, { sample }: ToolContext) {
    const answer = await sample({ messages: [{ role: "user", content: text(words) }], maxTokens: 100 });
    return `LLM response: ${JSON.stringify(answer.content)}`;
  }

  @tool({ name: "test_elicitation", description: "Asks the person.", input: z.object({ message: z.string() }) })
  async elicitation({ message }: { message: string }, { elicit }: ToolContext) {
    const schema = z.object({
      username: z.string().describe("User's response"),
      email: z.string().describe("User's email address"),
    });
    return `User response: ${JSON.stringify(await elicit(message, schema))}`;
  }

  @tool({ name: "test_elicitation_sep1034_defaults", description: "Asks with defaults.", input: nothing })
  async defaults(_args: object, { elicit }: ToolContext) {
    const schema = z.object({
      name: z.string().default("John Doe"),
      age: z.int().default(30),
      score: z.number().default(95.5),
      status: z.enum(["active", "inactive", "pending"]).default("active"),
      verified: z.boolean().default(true),
    });
    return `Elicitation completed: ${JSON.stringify(await elicit("Who are you?", schema))}`;
  }

  @tool({ name: "test_elicitation_sep1330_enums", description: "Asks with choices of each kind.", input: nothing })
  async enums(_args: object, { elicit }: ToolContext) {
    const titled = [
      { const: "value1", title: "First Option" },
      { const: "value2", title: "Second Option" },
    ];
    const plain = ["option1", "option2", "option3"];
    const answer = await elicit("Choose.", {
      type: "object",
      properties: {
        untitledSingle: { type: "string", enum: plain },
        titledSingle: { type: "string", oneOf: titled },
        legacyEnum: {
          type: "string",
          enum: ["opt1", "opt2", "opt3"],
          enumNames: ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti: { type: "array", items: { type: "string", enum: plain } },
        titledMulti: { type: "array", items: { anyOf: titled } },
      },
      required: [],
    });
    return `Elicitation completed: ${JSON.stringify(answer)}`;
  }

  @tool({
    name: "json_schema_2020_12_tool",
    description: "Tool with JSON Schema 2020-12 features",
    input: z.strictObject({ name: z.string().optional(), address: address.optional() }).meta({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      allOf: [{ anyOf: [{ required: ["name"] }, { required: ["address"] }] }],
      if: { required: ["address"] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { properties: { address: { required: ["city"] } } },
      else: {},
    }),
  })
  jsonSchema() {
    return "ok";
  }

  @tool({ name: "test_reconnection", description: "Lets the client go before it answers.", input: nothing })
  async reconnection(_args: object, { detach }: ToolContext) {
    detach(500);
    await sleep(100);
    return "Reconnection test completed";
  }

  @resource("test://static-text", { mimeType: "text/plain", description: "Text." })
  staticText() {
    return "This is the content of the static text resource.";
  }

  @resource("test://static-binary", { mimeType: "image/png", description: "Bytes." })
  staticBinary() {
    return Buffer.from(PIXEL, "base64");
  }

  @resource("test://watched-resource", { mimeType: "text/plain", description: "It changes.", subscribe: true })
  watched() {
    return "Watched.";
  }

  @resource("test://template/{id}/data", { mimeType: "application/json", description: "By number." })
  template({ id }: { id: string }) {
    return JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
  }

  @prompt({ name: "test_simple_prompt", description: "A prompt." })
  simplePrompt() {
    return "This is a simple prompt for testing.";
  }

  @prompt({
    name: "test_prompt_with_arguments",
    description: "A prompt with arguments.",
    arguments: z.object({ arg1: z.string().describe("The first."), arg2: z.string().describe("The second.") }),
    complete: { arg1: (value) => ["paris", "park", "party"].filter((each) => each.startsWith(value)) },
  })
  promptWithArguments({ arg1, arg2 }: { arg1: string; arg2: string }) {
    return `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`;
  }

  @prompt({
    name: "test_prompt_with_embedded_resource",
    description: "A prompt with a resource.",
    arguments: z.object({ resourceUri: z.string().describe("Which.") }),
  })
  promptWithResource({ resourceUri }: { resourceUri: string }) {
    return [
      embeddedResource(resourceUri, "Embedded resource content for testing.", "text/plain"),
      text("Please process the embedded resource above."),
    ];
  }

  @prompt({ name: "test_prompt_with_image", description: "A prompt with a picture." })
  promptWithImage() {
    return [image(PIXEL, "image/png"), text("Please analyze the image above.")];
  }
}
