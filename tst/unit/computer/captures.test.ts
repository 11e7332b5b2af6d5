import { expect, it } from "vitest";
import type { Capture } from "../../../src/computer/operations.js";
import { TestComputer } from "../../fakes/computer-calls.js";
import { PaintDriver } from "../../fakes/paint-driver.js";

/** Learns the display's size with each picture. */
class TellingDriver extends PaintDriver {
  displays = 0;

  override async display(signal: AbortSignal) {
    this.displays += 1;
    return super.display(signal);
  }

  override async capture(signal: AbortSignal): Promise<Capture> {
    return { ...(await super.capture(signal)), display: this.screen };
  }
}

it("a capture that tells the display's size isn't preceded by asking for it", async () => {
  await using computer = await TestComputer.start(TellingDriver);
  const someone = computer.caller();
  await someone.ok("computer_screenshot");
  const asked = computer.driver.displays;
  computer.driver.screen = { width: 32, height: 20, scale: 2 };
  expect(await someone.ok("computer_screenshot")).toMatchObject({
    width: 64,
    height: 40,
    display: { width: 32, height: 20, scale: 2 },
  });
  expect(computer.driver.displays).toBe(asked);
});
