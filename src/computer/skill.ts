import { join } from "node:path";
import { packageRoot } from "../package-root.js";
import type { SkillGetResult } from "../protocol/skill.js";
import { skillAnswer } from "../skills/answer.js";
import { readSkillFolder } from "../skills/folder.js";
import { type SupportedKeys, saidKeys } from "./keys.js";
import { enumerated, withoutMissing } from "./skill-text.js";

/** A text file of a skill that comes with a driver; one is called SKILL.md. */
export interface PackFile {
  /** Relative to the skill's folder, with `/`. */
  readonly path: string;
  readonly text: string;
}

/** Something that a driver's tools are measured to answer wrongly, and what an agent does instead. */
export interface KnownFault {
  /** What the test that holds it is found by. */
  readonly id: string;
  /** The tools that it is about: it is told to those who have them all. */
  readonly tools: readonly string[];
  /** One or two sentences: what is called, and what is wrong with the answer. */
  readonly wrong: string;
  /** What to do instead, the best first: told is the first whose tools the reader has. The last one needs none. */
  readonly instead: readonly [
    ...{ readonly tools: readonly string[]; readonly text: string }[],
    { readonly text: string },
  ];
}

/** What a skill says of one computer. */
export interface ComputerFacts {
  readonly displaySize: { readonly width: number; readonly height: number } | undefined;
  /** Command lines. */
  readonly apps: readonly string[];
  readonly buttons: readonly string[];
  readonly maxClickCount: number;
  readonly maxDragPoints: number;
  readonly maxTextLength: number;
  readonly keys: SupportedKeys;
  readonly driverVersion: string;
  readonly faults: readonly KnownFault[];
}

/**
 * The skill of a computer. Under our own frontmatter the driver's text leads, where one comes with it; then what holds for
 * this computer alone; then how the tools of computer/v1 are used. The driver's other files lie beside ours.
 */
export class ComputerSkill {
  readonly #own = skillAnswer(readSkillFolder(join(packageRoot, "skills", "computer")));

  constructor(
    private readonly pack: readonly PackFile[],
    private readonly facts: ComputerFacts,
  ) {}

  /** For a reader who has these tools. What is ours names no other; the driver's text is as its author wrote it. */
  for(tools: readonly string[]): SkillGetResult {
    const has = new Set(tools);
    const allows = (tool: string) => has.has(tool);
    const [head, body] = splitHead(this.#own.content);
    const main = this.pack.find(({ path }) => path === "SKILL.md");
    const parts = [
      ...(main === undefined ? [] : [splitHead(main.text)[1]]),
      thisComputer(this.facts, tools, main !== undefined),
      ...(tools.some(isOurs) ? [withoutMissing(body, allows)] : []),
    ];
    const beside = this.pack.filter((file) => file !== main).map(({ path, text }) => ({ path, content: text }));
    const own = this.#own.files.map((file) =>
      "content" in file ? { path: file.path, content: withoutMissing(file.content, allows) } : file,
    );
    const { name, description } = this.#own;
    const content = `${head}\n${parts.map((part) => part.trim()).join("\n\n")}\n`;
    return { name, description, content, files: [...beside, ...own] };
  }
}

/** The frontmatter with its lines `---`, and what follows. A driver's is taken off unread: it may keep other rules. */
function splitHead(text: string): [head: string, body: string] {
  const end = /^---[ \t]*\r?\n[\s\S]*?\r?\n---[ \t]*(\r?\n|$)/.exec(text)?.[0].length ?? 0;
  return [text.slice(0, end), text.slice(end)];
}

function thisComputer(facts: ComputerFacts, tools: readonly string[], hasPack: boolean): string {
  const has = (...names: readonly string[]) => names.every((name) => tools.includes(name));
  const { displaySize, apps, buttons, maxClickCount, maxDragPoints, maxTextLength, keys, driverVersion } = facts;
  const [own, others] = [tools.filter(isOurs), tools.filter((tool) => !isOurs(tool))];
  const items = [
    ...(displaySize === undefined ? [] : [`Its display has ${displaySize.width} by ${displaySize.height} pixels.`]),
    ...(apps.length === 0 ? [] : [`It starts with ${enumerated(apps.map(asCode))}.`]),
    ...(own.length === 0 ? [] : [`Your tools of \`computer/v1\` are ${enumerated(own.map(asCode))}.`]),
    ...(others.length === 0 ? [] : [`The other tools that you have are ${enumerated(others.map(asCode))}.`]),
    ...(hasPack ? ["The text above is the driver's own, and it may name tools that you don't have here."] : []),
    ...(has("computer_click")
      ? [`\`computer_click\` has the ${plural("button", buttons)}, and clicks up to ${times(maxClickCount)}.`]
      : []),
    ...(has("computer_drag")
      ? [maxDragPoints > 2 ? `\`computer_drag\` follows up to ${maxDragPoints} points.` : STRAIGHT]
      : []),
    ...(has("computer_type") ? [`\`computer_type\` takes up to ${maxTextLength} characters a call.`] : []),
    ...(has("computer_key") ? [`\`computer_key\` presses ${saidKeys(keys)}.`] : []),
  ];
  const faults = facts.faults.filter((fault) => has(...fault.tools));
  const told = faults.map(({ wrong, instead }) => {
    const best = instead.find((way) => !("tools" in way) || has(...way.tools));
    return `- ${wrong} ${best?.text ?? ""}`.trimEnd();
  });
  return [
    "# This computer",
    "",
    ...items.map((item) => `- ${item}`),
    ...(told.length === 0 ? [] : ["", "## Answers that are wrong", "", WRONG(driverVersion), "", ...told]),
  ].join("\n");
}

const STRAIGHT = "`computer_drag` goes straight from a start to an end: a path has two points.";

const WRONG = (version: string) =>
  `The driver's version here, ${version}, was measured to answer these wrongly. Its other answers are taken as they come.`;

function isOurs(tool: string): boolean {
  return tool.startsWith("computer_");
}

function asCode(text: string): string {
  return text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``;
}

function plural(word: string, names: readonly string[]): string {
  return `${word}${names.length === 1 ? "" : "s"} ${enumerated(names)}`;
}

function times(count: number): string {
  return count === 1 ? "once" : count === 2 ? "twice" : `${count} times`;
}
