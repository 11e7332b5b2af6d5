import { describe, expect, it } from "vitest";
import { KNOWN_FAULTS } from "../../../drivers/cua-driver/known-faults.js";
import { type ComputerFacts, ComputerSkill } from "../../../src/computer/skill.js";
import { PRINTABLE_KEYS } from "../../../src/index.js";
import { skillFromAnswer } from "../../../src/skills/answer.js";

const OURS = ["screenshot", "click", "drag", "scroll", "type", "key", "wait"].map((name) => `computer_${name}`);
const GROUPS = ["pointer_move", "pointer_down", "pointer_up", "pointer_position", "pointer_list", "keyboard_down"];
const POINTER_AND_KEYBOARD = [...GROUPS, "keyboard_up"].map((name) => `computer_${name}`);
const DRIVERS = [
  ...new Set(
    KNOWN_FAULTS.flatMap(({ tools, instead }) => [
      ...tools,
      ...instead.flatMap((way) => ("tools" in way ? way.tools : [])),
    ]),
  ),
].filter((name) => !name.startsWith("computer_"));
const ALL = [...OURS, ...POINTER_AND_KEYBOARD, ...DRIVERS];

const FACTS: ComputerFacts = {
  displaySize: { width: 1280, height: 800 },
  apps: ["xterm"],
  buttons: ["left", "right"],
  maxClickCount: 3,
  maxDragPoints: 2,
  maxTextLength: 5000,
  keys: [...PRINTABLE_KEYS, "Enter"],
  driverVersion: "1.2.3",
  faults: KNOWN_FAULTS,
};
const PACK = [
  { path: "SKILL.md", text: "---\nname: theirs\ndescription: x\n---\n# Theirs\nUse `click`.\n" },
  { path: "MORE.md", text: "more" },
];

/** Each tool that a text names in code, of all that there are. */
function named(text: string): string[] {
  return [...text.matchAll(/`([a-z_]+)`/g)].map(([, name = ""]) => name).filter((name) => ALL.includes(name));
}

function subsetsOf(names: readonly string[]): string[][] {
  return Array.from({ length: 2 ** names.length }, (_, bits) => names.filter((_name, at) => bits & (1 << at)));
}

describe("a computer's skill", () => {
  const skill = new ComputerSkill(PACK, FACTS);
  const withoutPack = new ComputerSkill([], FACTS);

  it("names no tool that its reader lacks, whichever of the seven and of those that a fault is about they have", () => {
    for (const ours of subsetsOf(OURS)) {
      for (const others of [
        [],
        DRIVERS,
        ...DRIVERS.map((one) => [one]),
        ...DRIVERS.map((one) => DRIVERS.filter((each) => each !== one)),
      ]) {
        const tools = [...ours, ...others];
        const { content, files } = withoutPack.for(tools);
        const text = [content, ...files.map((file) => ("content" in file ? file.content : ""))].join("\n");
        const foreign = named(text).filter((name) => !tools.includes(name));
        expect(foreign, tools.join(" ")).toEqual([]);
        expect(tools.filter((name) => !named(text).includes(name))).toEqual([]);
      }
    }
  });

  it("names the tools of a driver with pointer and keyboard groups", () => {
    expect(new Set(named(withoutPack.for([...OURS, ...POINTER_AND_KEYBOARD]).content))).toEqual(
      new Set([...OURS, ...POINTER_AND_KEYBOARD]),
    );
  });

  it("tells a fault to those alone who have the tools that it is about, with the best way out that they have", () => {
    for (const { tools, wrong, instead } of KNOWN_FAULTS) {
      for (const way of instead) {
        const { content } = skill.for([...tools, ...("tools" in way ? way.tools : [])]);
        expect(content).toContain(`- ${wrong} ${way.text}\n`);
      }
      expect(skill.for(ALL.filter((name) => !tools.includes(name))).content).not.toContain(wrong);
    }
  });

  it("is a skill by the rules for every reader, with one frontmatter, the driver's text before ours", () => {
    for (const tools of [ALL, OURS, DRIVERS, ["computer_wait"], []]) {
      const answer = skill.for(tools);
      expect(skillFromAnswer(answer, "a test").name).toBe("computer");
      expect(answer.content.match(/^(name|description): /gm)).toHaveLength(2);
      expect(answer.content).toMatch(/^---\n[\s\S]*?\n---\n+# Theirs\nUse `click`\.\n\n# This computer\n/);
      expect(answer.files.map(({ path }) => path)).toEqual(["MORE.md", "references/refusals.md"]);
    }
  });
});
