import { createHash } from "node:crypto";
import { SKILL_URN, SkillEntry, SkillGetResult } from "../../protocol/skill.js";
import { skillFromAnswer } from "../../skills/answer.js";
import type { Skill } from "../../skills/skill.js";
import { type BasicCheck, expectSame, expectThat, Finding } from "../check.js";
import type { Driver } from "../driver.js";
import type { ProbeSession } from "../session.js";

/** X: the environment's own skill, by skill/v1 and by MCP's Skills extension. */
export const skillChecks: readonly BasicCheck[] = [
  {
    id: "X",
    name: "its skill keeps the rules of skills",
    level: "basic",
    needs: [SKILL_URN],
    async run(driver) {
      await ownSkill(driver);
    },
  },
  {
    id: "X",
    name: "its skill is listed over MCP with the same files, and each has the bytes that it is listed with",
    level: "basic",
    needs: [SKILL_URN],
    async run(driver) {
      const skill = await ownSkill(driver);
      const session = await driver.session();
      const root = `skill://${skill.name}`;
      const { resources } = await listed(session, `${root}/SKILL.md`);
      const uriOf = (path: string) => `${root}/${path.split("/").map(encodeURIComponent).join("/")}`;
      const files = skill.files.map(({ path, size, sha256 }) => ({
        uri: uriOf(path),
        digest: `sha256:${sha256}`,
        size,
      }));
      const byUri = (a: { uri: string }, b: { uri: string }) => (a.uri < b.uri ? -1 : 1);
      const shown = resources === "dynamic" ? [] : resources.map(({ uri, digest, size }) => ({ uri, digest, size }));
      expectSame("what it lists", shown.sort(byUri), files.sort(byUri));
      for (const { uri, digest } of files) {
        const { contents } = await session.request("resources/read", { uri });
        const [content] = contents as { text?: string; blob?: string }[];
        const bytes = Buffer.from(
          content?.text ?? content?.blob ?? "",
          content?.text === undefined ? "base64" : "utf8",
        );
        expectSame(`what it reads of ${uri}`, `sha256:${createHash("sha256").update(bytes).digest("hex")}`, digest);
      }
    },
  },
];

async function ownSkill(driver: Driver): Promise<Skill> {
  const answer = SkillGetResult.safeParse(await driver.invoke(SKILL_URN, "get"));
  expectThat(answer.success, "its answer is no skill");
  const skill = skillFromAnswer(answer.data, driver.card.name);
  expectSame("the name it comes as", answer.data.name, skill.name);
  return skill;
}

/** The entry of a skill, on whichever page it is. */
async function listed(session: ProbeSession, uri: string): Promise<SkillEntry> {
  let cursor: unknown;
  do {
    const page = await session.request("skills/list", cursor === undefined ? {} : { cursor });
    const found = (page.skills as { uri?: unknown }[]).find((entry) => entry.uri === uri);
    if (found !== undefined) return SkillEntry.parse(found);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  throw new Finding(`${uri} isn't listed`);
}
