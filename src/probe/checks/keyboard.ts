import { KEYBOARD_RANGES, KEYBOARD_URN, KeyboardAnswer } from "../../protocol/computer.js";
import { type BasicCheck, expectSame } from "../check.js";

/** X: computer-keyboard. */
export const keyboardChecks: BasicCheck[] = [
  {
    id: "X",
    name: "computer-keyboard set to its own settings keeps them",
    level: "basic",
    needs: [KEYBOARD_URN],
    async run(driver) {
      const before = KeyboardAnswer.parse(await driver.invoke(KEYBOARD_URN, "get"));
      expectSame("set's answer", KeyboardAnswer.parse(await driver.invoke(KEYBOARD_URN, "set", before)), before);
      expectSame("get's answer", KeyboardAnswer.parse(await driver.invoke(KEYBOARD_URN, "get")), before);
    },
  },
  {
    id: "X",
    name: "computer-keyboard refuses what is out of range, and a layout that it doesn't have",
    level: "basic",
    needs: [KEYBOARD_URN],
    async run(driver) {
      for (const [name, { max }] of Object.entries(KEYBOARD_RANGES)) {
        await driver.invokeRefused(KEYBOARD_URN, "set", { [name]: max + 1 }, "invalid_argument", 400);
      }
      await driver.invokeRefused(KEYBOARD_URN, "set", { layout: "no-such-layout" }, "unsupported", 501);
    },
  },
];
