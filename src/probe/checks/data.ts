import { createHash, randomUUID } from "node:crypto";
import { DATA_OBJECTS_URN, INTAKE_URN, Part } from "../../protocol/data-plane.js";
import { type Check, expectSame, expectThat } from "../check.js";

const needs = [INTAKE_URN, DATA_OBJECTS_URN];

/** X: the data plane. */
export const dataChecks: Check[] = [
  {
    id: "X",
    name: "data/get answers its parts",
    level: "basic",
    needs,
    unless: ({ card }) => (card.capabilities.operations?.includes("data/get") ? undefined : "the card has no data/get"),
    async run(driver) {
      const parts = await driver.getData();
      expectThat(Array.isArray(parts) && parts.every((part) => Part.safeParse(part).success), "it answered no parts");
    },
  },
  {
    id: "X",
    name: "what the data plane can't read, doesn't know or can't take is refused with JSON-RPC's codes",
    level: "basic",
    needs,
    async run(driver) {
      const request = { jsonrpc: "2.0", id: 7 };
      for (const [body, code] of [
        ["{", -32700],
        [request, -32600],
        [{ ...request, method: "data/none", params: {} }, -32601],
        [{ ...request, method: "data/add", params: { parts: [] } }, -32602],
      ] as const) {
        const { error } = (await driver.dataPlane(body)) as { error?: { code?: number } };
        expectSame(`the answer to ${JSON.stringify(body)}`, error?.code, code);
      }
    },
  },
  {
    id: "X",
    name: "a file that data/add writes is there whole for a program to read",
    level: "full",
    needs,
    async run(board) {
      const { driver, folder } = board;
      for (const text of [`written by data/add: ${randomUUID()} é東`, `again: ${randomUUID()}`]) {
        await driver.addFile(`${folder}/inbox`, Buffer.from(text));
        await board.until(
          ({ inbox }) => inbox === text,
          ({ inbox }) => inbox,
        );
      }
      const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, index) => (index * 7) & 255));
      await driver.addFile(`${folder}/new/deep/bytes`, bytes);
      const { stdout } = await driver.run(["sha256sum", `${folder}/new/deep/bytes`]);
      expectSame("its digest", stdout.slice(0, 64), createHash("sha256").update(bytes).digest("hex"));
    },
  },
];
