import type { JsonObject, ToolDefinition } from "../../src/protocol/tool.js";
import { jsonSha256, sha256 } from "./digests.js";
import type { Pin, PinnedTool } from "./pin-schema.js";
import type { Served } from "./served.js";

/** The part of the pin that says what is served. */
export type PinnedServed = Pick<
  Pin,
  "instructions" | "listExtras" | "refusals" | "resources" | "skillPack" | "skills"
> & {
  tools: PinnedTool[];
};

/** Digests of everything that is served; `listExtras` holds those of the given keys beside `tools` that are there. */
export function digestServed(served: Served, extras: readonly string[]): PinnedServed {
  return {
    instructions: sized(served.instructions),
    listExtras: Object.fromEntries(
      extras.filter((key) => key in served.listKeys).map((key) => [key, jsonSha256(served.listKeys[key])]),
    ),
    tools: served.tools.map(digestTool),
    resources: served.resources.map(({ entry, text }) => ({
      uri: entry.uri,
      mimeType: entry.mimeType,
      ...sized(text),
      entry: jsonSha256(entry),
    })),
    skills: served.skills.map((skill) => ({
      uri: skill.uri,
      entry: jsonSha256(skill),
      files: skill.resources.map(({ uri, size, digest }) => ({ uri, size, sha256: digest.slice("sha256:".length) })),
    })),
    refusals: jsonSha256(served.texts.refusals),
    skillPack: served.skillPack.map(({ path, text }) => ({ path, ...sized(text) })),
  };
}

export function digestTool(tool: ToolDefinition): PinnedTool {
  const { name, annotations = {}, ...rest } = tool;
  const required = tool.inputSchema.required;
  return {
    name,
    sha256: jsonSha256(tool),
    annotations: annotations as JsonObject,
    required: Array.isArray(required) ? required.map(String) : [],
    parts: Object.fromEntries(Object.entries(rest).map(([key, part]) => [key, jsonSha256(part)])),
  };
}

/** The tools of the daemon's own list, in its snake_case, as `tools/list` shows them. */
export function listedTools(list: JsonObject): ToolDefinition[] {
  return (list.tools as JsonObject[]).map((tool) => ({
    name: String(tool.name),
    description: String(tool.description),
    inputSchema: tool.input_schema as JsonObject,
    annotations: {
      readOnlyHint: tool.read_only === true,
      destructiveHint: tool.destructive === true,
      idempotentHint: tool.idempotent === true,
      openWorldHint: tool.open_world === true,
    },
    capabilities: tool.capabilities,
    risk: tool.risk,
    ...("output_schema" in tool ? { outputSchema: tool.output_schema as JsonObject } : {}),
  }));
}

function sized(text: string) {
  return { size: Buffer.byteLength(text), sha256: sha256(text) };
}

/** What is different, a line a difference, said as how `now` differs from `before`. */
export function servedDifferences(before: PinnedServed, now: PinnedServed): string[] {
  return [
    ...(same(before.instructions, now.instructions) ? [] : ["instructions: changed"]),
    ...keyed("list key", Object.entries(before.listExtras), Object.entries(now.listExtras)),
    ...toolDifferences(before.tools, now.tools),
    ...named("resource", "uri", before.resources, now.resources, () => "changed"),
    ...named("skill", "uri", before.skills, now.skills, skillChanges),
    ...(before.refusals === now.refusals ? [] : ["refusals: changed"]),
    ...named("skill file", "path", before.skillPack, now.skillPack, () => "changed"),
  ];
}

/** The tools that are missing, added or changed, a line each. */
export function toolDifferences(before: readonly PinnedTool[], now: readonly PinnedTool[]): string[] {
  return named("tool", "name", before, now, toolChanges);
}

/** What moving from one pin to another changes, a line a change. */
export function pinDifferences(before: Pin, now: Pin): string[] {
  const value = (what: string, from: string, to: string) => (from === to ? [] : [`${what}: ${from} -> ${to}`]);
  return [
    ...value("version", before.driver.version, now.driver.version),
    ...value("contract version", before.driver.contractVersion, now.driver.contractVersion),
    ...(["amd64", "arm64"] as const).flatMap((arch) => [
      ...value(`${arch} wheel`, before.arches[arch].wheel.sha256, now.arches[arch].wheel.sha256),
      ...value(`${arch} executable`, before.arches[arch].executable.sha256, now.arches[arch].executable.sha256),
    ]),
    ...servedDifferences(before, now),
  ];
}

function toolChanges(before: PinnedTool, now: PinnedTool): string {
  const parts = [
    ...(same(before.annotations, now.annotations) ? [] : ["annotations"]),
    ...(same(before.required, now.required) ? [] : ["required arguments"]),
    ...[...new Set([...Object.keys(before.parts), ...Object.keys(now.parts)])].filter(
      (part) => before.parts[part] !== now.parts[part],
    ),
  ];
  return `changed (${parts.join(", ") || "something"})`;
}

function skillChanges(before: Pin["skills"][number], now: Pin["skills"][number]): string {
  const files = named("file", "uri", before.files, now.files, () => "changed");
  return `changed (${files.join("; ") || "its entry"})`;
}

function keyed(what: string, before: [string, string][], now: [string, string][]): string[] {
  const entry = ([key, digest]: [string, string]) => ({ key, digest });
  return named(what, "key", before.map(entry), now.map(entry), () => "changed");
}

function named<Name extends string, Item extends Record<Name, string>>(
  what: string,
  name: Name,
  before: readonly Item[],
  now: readonly Item[],
  changes: (before: Item, now: Item) => string,
): string[] {
  const later = new Map(now.map((item) => [item[name], item]));
  const earlier = new Set(before.map((item) => item[name]));
  return [
    ...before.flatMap((item) => {
      const other = later.get(item[name]);
      if (other === undefined) return [`${what} ${item[name]}: missing`];
      return same(item, other) ? [] : [`${what} ${item[name]}: ${changes(item, other)}`];
    }),
    ...now.filter((item) => !earlier.has(item[name])).map((item) => `${what} ${item[name]}: added`),
  ];
}

function same(a: unknown, b: unknown): boolean {
  return jsonSha256(a) === jsonSha256(b);
}
