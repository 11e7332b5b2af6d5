import { afterAll, beforeAll, expect, it } from "vitest";
import { type Computer, startComputer } from "../../harness/computer.js";
import { until } from "../../harness/until.js";

/** Writes down what reaches a window, in the order in which it comes. */
const RECORDER = `
import sys, tkinter
root = tkinter.Tk()
root.title("recorder")
root.geometry("400x300+100+100")
out = open(sys.argv[1], "w", buffering=1)
root.bind("<ButtonPress>", lambda event: print("click", file=out))
root.bind("<KeyPress>", lambda event: print(event.keysym, file=out))
root.after(1, root.focus_force)
root.mainloop()`;

let computer: Computer;
beforeAll(async () => {
  computer = await startComputer();
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
});

it("a key that is pressed after a click reaches the program after it, however slow the window manager is", async () => {
  const log = `${computer.runDir}/recorded`;
  const start = 'exec >/dev/null 2>&1; setsid python3 -c "$0" "$1" & :';
  await computer.run("sh", "-c", start, RECORDER, log);
  const agent = await computer.connect();
  await until(
    async () => JSON.stringify(await agent.call("list_windows", {})),
    (seen) => seen.includes("recorder"),
    { ms: 20_000 },
  );
  await agent.call("computer_screenshot", {});
  const recorded = async () => (await computer.run("cat", log)).trim().split("\n").filter(Boolean);
  await agent.call("computer_click", { x: 300, y: 300 });
  await until(recorded, (lines) => lines.length === 1, { what: "the first click" });
  for (let round = 0; round < 5; round += 1) {
    // The window manager sleeps when the click comes, and wakes up a moment later.
    await computer.run("sh", "-c", "pkill -STOP -x openbox; (sleep 0.1; pkill -CONT -x openbox) >/dev/null 2>&1 & :");
    await agent.call("computer_click", { x: 300, y: 300 });
    await agent.call("computer_key", { keys: ["F5"] });
    const expected = Array.from({ length: round + 1 }, () => ["click", "F5"]).flat();
    await until(recorded, (lines) => lines.length === expected.length + 1, { what: `round ${round}` });
    expect((await recorded()).slice(1)).toEqual(expected);
  }
});
