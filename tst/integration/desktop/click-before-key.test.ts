import { afterAll, beforeAll, expect, it } from "vitest";
import { type Computer, envFolder, startComputer } from "../../harness/computer.js";
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

/** Writes down where the left button goes down and up, and where the wheel is turned. */
const PLACES = `
import sys, tkinter
root = tkinter.Tk()
root.title("places")
root.geometry("400x300+100+100")
out = open(sys.argv[1], "w", buffering=1)
for kind in ("ButtonPress", "ButtonRelease"):
    root.bind("<" + kind + ">", lambda event: print(event.num, event.x_root, event.y_root, file=out))
root.after(1, root.focus_force)
root.mainloop()`;

it("a pointer that goes on after a click leaves it where it was, however slow the window manager is", async () => {
  using env = envFolder('type = "computer"\ndriver = "reference"\n');
  await using reference = await startComputer(env.folder);
  const log = `${reference.runDir}/places`;
  await reference.run("sh", "-c", 'exec >/dev/null 2>&1; setsid python3 -c "$0" "$1" & :', PLACES, log);
  const places = async () => (await reference.run("sh", "-c", 'cat "$0" 2>/dev/null || :', log)).trim().split("\n");
  const agent = await reference.connect();
  await agent.call("computer_screenshot", {});
  await until(
    async () => {
      await agent.call("computer_click", { x: 300, y: 300 });
      return (await places()).length;
    },
    (count) => count >= 4,
    { ms: 20_000, every: 200, what: "a window that takes clicks" },
  );
  for (let round = 0; round < 5; round += 1) {
    const before = (await places()).length;
    await reference.run("sh", "-c", "pkill -STOP -x openbox; (sleep 0.1; pkill -CONT -x openbox) >/dev/null 2>&1 & :");
    await agent.call("computer_click", { x: 200, y: 200 });
    await agent.call("computer_click", { x: 250, y: 250 });
    await agent.call("computer_scroll", { x: 350, y: 350, direction: "down", amount: 1 });
    const after = await until(places, (lines) => lines.length >= before + 6, { what: `round ${round}` });
    expect(after.slice(before)).toEqual([
      ...["1 200 200", "1 200 200"],
      ...["1 250 250", "1 250 250"],
      ...["5 350 350", "5 350 350"],
    ]);
  }
});
