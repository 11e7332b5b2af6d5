import { randomUUID } from "node:crypto";
import type { JsonObject } from "../../protocol/tool.js";
import { type BasicCheck, expectSame, expectThat, NotApplicable } from "../check.js";
import type { Driver } from "../driver.js";
import { checkRefusal } from "../session.js";

const DISABLE = "urn:agentenv:disable-tool/v1";
const ENABLE = "urn:agentenv:enable-tool/v1";
const needs = [DISABLE, ENABLE];
const RESTORE_MS = 10_000;

/** X: tool access by role. Roles are new in each run, so nobody else's rules are touched. */
export const toolAccessChecks: BasicCheck[] = [
  {
    id: "X",
    name: "a tool that is disabled for a role is hidden from it and refused, and from nobody else",
    level: "basic",
    needs,
    async run(driver) {
      await hiddenFrom(driver, "computer_wait");
      const session = await driver.session();
      await session.ok("computer_wait", { ms: 0 });
    },
  },
  {
    id: "X",
    name: "a forwarded tool that is disabled for a role is hidden from it and refused too",
    level: "basic",
    needs,
    async run(driver) {
      const tools = await (await driver.session()).tools();
      const forwarded = tools.find(
        ({ name, annotations }) => !name.startsWith("computer_") && annotations?.readOnlyHint,
      );
      const any = forwarded ?? tools.find(({ name }) => !name.startsWith("computer_"));
      if (any === undefined) throw new NotApplicable("it serves no tools but computer/v1's");
      await hiddenFrom(driver, any.name);
    },
  },
  {
    id: "X",
    name: "with all tools disabled and one enabled a role has that one, and the answers say its rules",
    level: "basic",
    needs,
    async run(driver) {
      const role = newRole();
      const all = { role, tools: "*" };
      expectSame("disable's answer", await rules(driver, DISABLE, all), { role, disabled: ["*"], allowed: [] });
      try {
        const one = { role, tools: ["computer_wait"] };
        const answer = await rules(driver, ENABLE, one);
        expectSame("enable's answer", answer, { role, disabled: ["*"], allowed: ["computer_wait"] });
        const session = await driver.session(role);
        expectSame(
          "what is listed",
          (await session.tools()).map(({ name }) => name),
          ["computer_wait"],
        );
        await session.ok("computer_wait", { ms: 0 });
        await session.refused("computer_screenshot", {}, "permission_denied");
      } finally {
        await rules(driver.during(AbortSignal.timeout(RESTORE_MS)), ENABLE, all);
      }
    },
  },
];

const newRole = () => `agentenv-probe-${randomUUID().slice(0, 8)}`;

/** Checks one tool before, while and after it is disabled for a role. */
async function hiddenFrom(driver: Driver, tool: string): Promise<void> {
  const role = newRole();
  const request = { role, tools: [tool] };
  await rules(driver, DISABLE, request);
  try {
    const session = await driver.session(role);
    const listed = (await session.tools()).map(({ name }) => name);
    expectThat(!listed.includes(tool), `${tool} is listed for the role from which it was hidden`);
    checkRefusal(await session.call(tool), "permission_denied");
    const others = (await (await driver.session(newRole())).tools()).map(({ name }) => name);
    expectThat(others.includes(tool), `${tool} is hidden from another role too`);
  } finally {
    await rules(driver.during(AbortSignal.timeout(RESTORE_MS)), ENABLE, request);
  }
  const back = (await (await driver.session(role)).tools()).map(({ name }) => name);
  expectThat(back.includes(tool), `${tool} stays hidden once it is enabled again`);
}

async function rules(driver: Driver, uri: string, params: JsonObject): Promise<JsonObject> {
  const { role, disabled, allowed } = await driver.invoke(uri, uri === DISABLE ? "disable" : "enable", params);
  return { role, disabled, allowed };
}
