import { CARD_PATH, type Card } from "../../protocol/card.js";
import { POINT_TOOLS, SPACES_URN, SpacesAnswer } from "../../protocol/computer.js";
import { type BasicCheck, expectSame, expectThat } from "../check.js";
import type { Driver } from "../driver.js";

const RESTORE_MS = 10_000;

/** X: computer-spaces. */
export const spacesChecks: BasicCheck[] = [
  {
    id: "X",
    name: "computer-spaces set changes the default, and the descriptions of the tools that take points, here and on the card",
    level: "basic",
    needs: [SPACES_URN],
    async run(driver) {
      await withOtherSpace(driver, async (other) => {
        const now = SpacesAnswer.parse(await driver.invoke(SPACES_URN, "get"));
        expectSame("the default", now.default_space, other.default_space);
      });
    },
  },
  {
    id: "X",
    name: "points of a call that names no space are in the default one",
    level: "basic",
    needs: [SPACES_URN],
    async run(driver) {
      const session = await driver.session();
      const before = SpacesAnswer.parse(await driver.invoke(SPACES_URN, "get"));
      try {
        await driver.invoke(SPACES_URN, "set", { default_space: "norm", default_norm_scale: 10 });
        const { frame_id, width, height } = await session.shot();
        const args = { region: [0, 0, 10, 5], frame_id };
        const crop = (await session.callAsItIs("computer_screenshot", args)).structuredContent ?? {};
        expectSame("the size of a half", [crop.width, crop.height], [width, Math.ceil(height / 2)]);
        await driver.invoke(SPACES_URN, "set", { default_space: "frame" });
        const small = (await session.callAsItIs("computer_screenshot", args)).structuredContent ?? {};
        expectSame("the size of ten pixels by five", [small.width, small.height], [10, 5]);
      } finally {
        await driver.during(AbortSignal.timeout(RESTORE_MS)).invoke(SPACES_URN, "set", before);
      }
    },
  },
];

/** Checks the descriptions before, in and after the other space. */
async function withOtherSpace(driver: Driver, look: (other: SpacesAnswer) => Promise<void>): Promise<void> {
  const before = SpacesAnswer.parse(await driver.invoke(SPACES_URN, "get"));
  const other: SpacesAnswer = {
    default_space: before.default_space === "norm" ? "frame" : "norm",
    default_norm_scale: before.default_norm_scale,
  };
  const first = await descriptions(driver);
  await driver.invoke(SPACES_URN, "set", other);
  try {
    await look(other);
    const second = await descriptions(driver);
    for (const [tool, text] of first.listed) {
      expectThat(second.listed.get(tool) !== text, `the description of ${tool} is the same in both spaces`);
      expectSame(`the card's description of ${tool}`, second.onCard.get(tool), second.listed.get(tool));
    }
  } finally {
    await driver.during(AbortSignal.timeout(RESTORE_MS)).invoke(SPACES_URN, "set", before);
  }
  const third = await descriptions(driver);
  expectSame("the descriptions once it is set back", [...third.listed], [...first.listed]);
}

async function descriptions(driver: Driver) {
  const points: readonly string[] = POINT_TOOLS;
  const texts = (tools: readonly { name: string; description?: string | null | undefined }[]) =>
    new Map(
      tools.flatMap(({ name, description }) => (points.includes(name) ? [[name, description ?? ""] as const] : [])),
    );
  const card = (await driver.get(CARD_PATH)) as Card;
  return { listed: texts(await (await driver.session()).tools()), onCard: texts(card.capabilities.tools ?? []) };
}
