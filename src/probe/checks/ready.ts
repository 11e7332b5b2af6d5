import { setTimeout as sleep } from "node:timers/promises";
import { READY_URN, ReadyStatus } from "../../protocol/computer.js";
import { type BasicCheck, expectThat, Finding } from "../check.js";

/** How long a driver may take to become ready. */
const READY_MS = 60_000;

/** P0: it can be used. */
export const readyChecks: BasicCheck[] = [
  {
    id: "P0",
    name: "computer-ready says that it is ready",
    level: "basic",
    needs: [READY_URN],
    deadlineMs: READY_MS + 5_000,
    async run(driver) {
      const deadline = performance.now() + READY_MS;
      for (;;) {
        const status = ReadyStatus.safeParse(await driver.invoke(READY_URN, "status"));
        expectThat(status.success, "its answer is no status");
        const { ready, checks } = status.data;
        const failing = checks.filter(({ ok }) => !ok);
        expectThat(
          ready === (failing.length === 0),
          `ready is ${ready}, and ${failing.length} of ${checks.length} checks failed`,
        );
        if (ready) return;
        if (performance.now() > deadline) throw new Finding(`it isn't ready: ${JSON.stringify(failing)}`);
        await sleep(500, undefined, { signal: driver.signal });
      }
    },
  },
  {
    id: "P0",
    name: "a screenshot is answered",
    level: "basic",
    async run(driver) {
      await (await driver.session()).shot();
    },
  },
];
