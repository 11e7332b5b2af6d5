import { RemoteError } from "../../client/remote-error.js";
import { EXEC_URN } from "../../protocol/computer.js";
import { DATA_OBJECTS_URN, INTAKE_URN } from "../../protocol/data-plane.js";
import { expectThat, Finding, type FullCheck } from "../check.js";
import type { Board } from "../fixture/board.js";

const needs = [EXEC_URN, INTAKE_URN, DATA_OBJECTS_URN];

/** P9: whose the computer is, and what can't be reached. */
export const userChecks: FullCheck[] = [
  {
    id: "P9",
    name: "commands and added files are one user's, who isn't root",
    level: "full",
    needs,
    async run({ driver, folder }) {
      const uid = (await driver.run(["id", "-u"])).stdout.trim();
      const owner = (await driver.run(["stat", "-c", "%u", `${folder}/board.py`])).stdout.trim();
      expectThat(/^\d+$/.test(uid) && uid !== "0", `commands run as uid ${uid}`);
      expectThat(owner === uid, `data/add wrote as uid ${owner}, and commands run as ${uid}`);
    },
  },
  {
    id: "P9",
    name: "commands run in the session user's home, where added files are",
    level: "full",
    needs,
    async run({ driver, folder }) {
      const { stdout } = await driver.run(["sh", "-c", `cd && pwd && cd - >/dev/null && pwd && ls ${folder}/board.py`]);
      const [home, here] = stdout.split("\n");
      expectThat(home === here, `commands run in ${here}, and the home is ${home}`);
    },
  },
  {
    id: "P9",
    name: "data/add writes nothing outside the home: not above it, not by its name, not through a link",
    level: "full",
    needs,
    async run(board) {
      const { driver, folder } = board;
      const outside = (await driver.run(["mktemp", "-d"])).stdout.trim();
      try {
        await driver.run(["ln", "-s", outside, `${folder}/out`]);
        for (const path of [`../${folder}-above`, `${outside}/named`, `${folder}/../../up`, `${folder}/out/linked`]) {
          await notAdded(board, path);
        }
        const { stdout } = await driver.run(["ls", "-A", outside]);
        expectThat(stdout === "", `it wrote ${stdout.trim()} outside the home`);
      } finally {
        await driver.run(["rm", "-rf", outside, `${folder}/out`]);
      }
    },
  },
];

async function notAdded({ driver }: Board, path: string): Promise<void> {
  try {
    await driver.addFile(path, Buffer.from("no"));
  } catch (thrown) {
    if (thrown instanceof RemoteError && thrown.status === 200) return;
    throw thrown;
  }
  throw new Finding(`data/add took ${path}`);
}
