/** A source as the rules read it: its path from the project's root, with `/`, and its text. */
export interface Source {
  path: string;
  text: string;
}

/** Imports go down this list only; folders of one row may import each other as long as that makes no circle. */
const STREAM: ReadonlyArray<ReadonlyArray<string>> = [
  // Files that lie in src itself: errors.ts, and what else everyone may import.
  ["src/*.ts"],
  ["src/protocol"],
  ["src/environment"],
  ["src/computer", "src/skills", "src/stores"],
  ["src/client", "src/mcp", "src/http", "src/desktop", "src/bundles", "src/probe"],
  ["src/index.ts"],
  ["src/cli"],
  ["drivers"],
  ["bundles"],
];

const MAX_LINES = 330;
const MCP_SDK = "@modelcontextprotocol/sdk";
const BARREL = "src/index.ts";

/** Each broken rule as a sentence that begins with the file's path. */
export function brokenRules(sources: ReadonlyArray<Source>): string[] {
  return [...sources.flatMap(brokenInOneFile), ...importCircles(sources)];
}

function brokenInOneFile(source: Source): string[] {
  const { path, text } = source;
  const code = withoutComments(text);
  const broken: string[] = [];
  const lines = text.trimEnd().split("\n").length;
  if (lines > MAX_LINES)
    broken.push(`${path}: ${lines} lines, at most ${MAX_LINES}: give what it holds files of their own`);
  if (path.split("/").some((part) => /^utils?(\.|$)/.test(part))) {
    broken.push(`${path}: name it after what it holds, not utils`);
  }
  if (/\bexport\s*\*/.test(code)) broken.push(`${path}: export * is not used: name what is exported`);
  else if (path !== BARREL && /\bexport\b[^;"'`=(]*\bfrom\s*["']/.test(code)) {
    broken.push(`${path}: only ${BARREL} exports what another file defines`);
  }
  const from = zoneOf(path);
  if (from === undefined) broken.push(`${path}: has no place in the house; name its folder in tst/unit/architecture`);
  for (const imported of importsOf(code)) {
    if ((imported === MCP_SDK || imported.startsWith(`${MCP_SDK}/`)) && from !== "src/mcp") {
      broken.push(`${path}: imports the MCP SDK, which src/mcp alone does`);
    }
    const target = targetOf(path, imported);
    const to = target === undefined ? undefined : zoneOf(target);
    if (from !== undefined && to !== undefined && !isDownstream(from, to)) {
      broken.push(`${path}: imports ${target}, against the stream (${to} may import ${from}, not the other way)`);
    } else if (target !== undefined && to === undefined) {
      broken.push(`${path}: imports ${target}, which is outside of src, drivers and bundles`);
    }
  }
  return broken;
}

/** Folders of one row of the stream that import each other, directly or around. */
function importCircles(sources: ReadonlyArray<Source>): string[] {
  const edges = new Map<string, Map<string, string>>();
  for (const { path, text } of sources) {
    const from = zoneOf(path);
    if (from === undefined) continue;
    for (const imported of importsOf(withoutComments(text))) {
      const target = targetOf(path, imported);
      const to = target === undefined ? undefined : zoneOf(target);
      if (to === undefined || to === from || rankOf(to) !== rankOf(from)) continue;
      const targets = edges.get(from) ?? new Map<string, string>();
      edges.set(from, targets.set(to, path));
    }
  }
  const reaches = (start: string, goal: string, seen = new Set<string>()): boolean => {
    if (start === goal) return true;
    if (seen.has(start)) return false;
    seen.add(start);
    return [...(edges.get(start)?.keys() ?? [])].some((next) => reaches(next, goal, seen));
  };
  return [...edges].flatMap(([from, targets]) =>
    [...targets]
      .filter(([to]) => reaches(to, from))
      .map(([to, path]) => `${path}: imports from ${to}, which imports from ${from}: a circle`),
  );
}

/** The part of the house that a path belongs to: a row's entry, or the driver's or bundle's own folder. */
function zoneOf(path: string): string | undefined {
  const [top = "", second = ""] = path.split("/");
  const isLoose = top === "src" && /^[^/]+\.ts$/.test(second) && path !== BARREL;
  const zone = isLoose ? "src/*.ts" : `${top}/${second}`;
  return (top === "src" && rankOf(zone) !== -1) || top === "drivers" || top === "bundles" ? zone : undefined;
}

function rankOf(zone: string): number {
  const [top = ""] = zone.split("/");
  return STREAM.findIndex((row) => row.includes(zone) || row.includes(top));
}

function isDownstream(from: string, to: string): boolean {
  // Drivers and bundles are below the command line in no sense: it finds them by name, and they never call it.
  if (to === "src/cli" && from !== "src/cli") return false;
  return rankOf(to) <= rankOf(from);
}

/** The path of a relative import from the project's root, the `.js` of the build read as its `.ts`; undefined for others. */
function targetOf(importer: string, imported: string): string | undefined {
  if (!imported.startsWith(".") || imported.endsWith(".json")) return undefined;
  const parts = importer.split("/").slice(0, -1);
  for (const part of imported.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/").replace(/\.js$/, ".ts");
}

const IMPORTS = [
  /\b(?:import|export)\b[^;"'`]*?\bfrom\s*["']([^"']+)["']/g,
  /\bimport\s*["']([^"']+)["']/g,
  /\bimport\s*\(\s*["']([^"']+)["']\s*\)/g,
];

function importsOf(code: string): string[] {
  return IMPORTS.flatMap((pattern) => [...code.matchAll(pattern)].map((match) => match[1] ?? ""));
}

const STRINGS_AND_COMMENTS = /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g;

function withoutComments(text: string): string {
  return text.replace(STRINGS_AND_COMMENTS, (_all, string?: string) => string ?? "");
}
