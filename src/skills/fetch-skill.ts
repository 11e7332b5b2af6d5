import { request } from "undici";
import { messageOf, SetupError } from "../errors.js";
import { extensionEndpoint } from "../protocol/card.js";
import { SKILL_URN, SkillGetResult } from "../protocol/skill.js";
import { skillFromAnswer } from "./answer.js";
import { MAX_BYTES, type Skill } from "./skill.js";

const DEADLINE_MS = 60_000;
/** The largest skill in base64, and what is around it. */
const MAX_ANSWER = 2 * MAX_BYTES;

/** Asks a running environment for its skill, by skill/v1. Throws SkillRefused, SetupError where none can be had there. */
export async function fetchSkill(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Skill> {
  const endpoint = new URL(extensionEndpoint(SKILL_URN, "get"), url);
  const { status, text } = await getText(endpoint, headers);
  if (status === 404) throw new SetupError(`${url} has no skill`, { hint: `agentenv card ${url} shows what it has` });
  if (status === 401 || status === 403) {
    throw new SetupError(`${url} ${status === 401 ? "asks for a bearer token" : "refuses this token"}`, {
      hint: "name a file with a token of the scope framework by --token-file, or set AGENTENV_TOKEN",
    });
  }
  if (status !== 200) throw new SetupError(`${endpoint} answered ${status}: ${text.slice(0, 300)}`);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new SetupError(`${endpoint} answered no JSON`, { cause });
  }
  const answer = SkillGetResult.safeParse(json);
  if (answer.success) return skillFromAnswer(answer.data, url);
  const [fault] = answer.error.issues;
  throw new SetupError(`${endpoint} answered no skill: ${fault?.path.join(".")} ${fault?.message}`);
}

async function getText(endpoint: URL, headers: Readonly<Record<string, string>>) {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    const { statusCode, body } = await request(endpoint, { headers, signal: AbortSignal.timeout(DEADLINE_MS) });
    for await (const chunk of body) {
      chunks.push(chunk as Buffer);
      size += (chunk as Buffer).length;
      if (size > MAX_ANSWER) throw new Error(`the answer has more than ${MAX_ANSWER} bytes`);
    }
    return { status: statusCode, text: Buffer.concat(chunks).toString("utf8") };
  } catch (cause) {
    throw new SetupError(
      `${endpoint} can't be read: ${messageOf(cause) || String((cause as { code?: string }).code)}`,
      {
        hint: "is an environment running there? `npm start` and `agentenv up` print its address",
        cause,
      },
    );
  }
}
