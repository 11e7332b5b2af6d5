import { expect, test } from "vitest";
import { agentenv, envFolder, startComputer } from "../../../harness/computer.js";
import { askCuaMcp } from "../../../harness/cua-mcp.js";

const DESK = 'type = "computer"\ndriver = "cua-driver"\n';

test("a desk with [tools] shows and takes what it names alone; the rest is answered as cua-driver answers an unknown tool", async () => {
  using env = envFolder(
    `${DESK}[tools]\nhide = ["browser_*", "kill_app", "computer_wait"]\n[tools.roles.grader]\nonly = ["computer_*"]\n`,
  );
  await using computer = await startComputer(env.folder);
  const agent = await computer.connect();
  const grader = await computer.connect({ role: "grader" });
  const names = (await agent.tools()).map(({ name }) => name);
  expect(names).toHaveLength(73 - 11);
  expect(names.filter((name) => /^browser_|^kill_app$|^computer_wait$/.test(name))).toEqual([]);
  expect((await grader.tools()).map(({ name }) => name)).toEqual([
    "computer_screenshot",
    "computer_click",
    "computer_drag",
    "computer_scroll",
    "computer_type",
    "computer_key",
  ]);

  const [unknown] = (await askCuaMcp(computer, [
    { method: "tools/call", params: { name: "NO_SUCH_TOOL", arguments: {} } },
  ])) as [object];
  const asUnknown = (name: string) => JSON.parse(JSON.stringify(unknown).replaceAll("NO_SUCH_TOOL", name));
  for (const name of ["kill_app", "browser_click", "computer_wait", "never_was"]) {
    expect(await agent.call(name, { pid: 1 })).toEqual(asUnknown(name));
  }
  expect(await grader.call("get_screen_size", {})).toEqual(asUnknown("get_screen_size"));
  expect((await agent.call("get_screen_size", {})).structuredContent).toMatchObject({ width: 1280 });
});

test("a tool's name in [tools] that no tool has is refused at start, with the closest one", async () => {
  using env = envFolder(`${DESK}[tools]\nhide = ["kill_ap"]\n`);
  const { code, stderr } = await agentenv(["up", env.folder, "--port", "0", "--json"]).exited;
  expect(stderr).toContain('env.toml: tools.hide: no tool is called "kill_ap"');
  expect(stderr).toContain('did you mean "kill_app"?');
  expect(stderr).not.toMatch(/^\s+at /m);
  expect(code).toBe(1);
});
