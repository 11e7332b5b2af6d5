import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { McpClient } from "../../src/mcp/client.js";
import { type Computer, envFolder, startComputer } from "../harness/computer.js";
import { until } from "../harness/until.js";

const ENV = `type = "computer"
driver = "cua-driver"
[settings.driver]
call_deadline_s = 3
capture_deadline_s = 1
metadata_deadline_s = 0.5
`;

const env = envFolder(ENV);
let computer: Computer;
let agent: McpClient;
beforeAll(async () => {
  computer = await startComputer(env.folder);
  agent = await computer.connect();
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
  env[Symbol.dispose]();
});

const pid = async () => {
  const file = `${computer.runDir}/cua-driver.pid`;
  return Number(await until(() => computer.run("sh", "-c", 'cat "$1" || :', "sh", file), Boolean, { what: file }));
};
const works = async () => (await agent.call("get_screen_size", {})).isError !== true;

describe("a daemon that lives and is of no use", () => {
  it("stopped, lets its deadlines answer, reads not applied and input unknown, and is restarted, with the reason in the log", async () => {
    await agent.call("computer_screenshot", {});
    expect(await works()).toBe(true);
    const before = await pid();
    await computer.run("kill", "-STOP", String(before));
    const started = performance.now();
    const [read, typed, shot, queued] = await Promise.all([
      agent.call("get_cursor_position", {}),
      agent.call("type_text", { scope: "desktop", text: "x" }),
      agent.call("computer_screenshot", {}),
      agent.call("computer_click", { x: 5, y: 5 }),
    ]);
    const took = performance.now() - started;
    expect(read.structuredContent).toMatchObject({ code: "timeout", applied: "no" });
    // It was sent, and nobody knows what became of it: it dies with the daemon before its own deadline comes.
    expect(typed.structuredContent).toMatchObject({ applied: "unknown" });
    expect(["timeout", "delivery_failed"]).toContain(typed.structuredContent?.code);
    expect(shot.structuredContent).toMatchObject({ applied: "no" });
    // Input of others waited for its end, and then found a daemon that was restarting, or the new one.
    if (queued.isError) expect(queued.structuredContent).toMatchObject({ applied: "no" });
    expect(took).toBeLessThan(6_000);
    await until(works, Boolean, { ms: 5_000, what: "the new daemon" });
    expect(await pid()).not.toBe(before);
    expect(computer.command.stderr).toMatch(/missed its deadline, and then metadata failed too/);
    expect(computer.command.stderr).toContain('"msg":"restarting"');
  });

  it("whose socket was removed is restarted, and calls are device_unavailable meanwhile", async () => {
    const before = await pid();
    await computer.run("rm", computer.socket);
    const seen: unknown[] = [];
    await until(
      async () => {
        const answer = await agent.call("click", { scope: "desktop", x: 5, y: 5 });
        if (answer.isError) seen.push(answer.structuredContent);
        return answer.isError !== true && (await pid()) !== before;
      },
      Boolean,
      { ms: 10_000, what: "a call that works" },
    );
    for (const refusal of seen as { code: string; applied: string }[]) {
      // One that had a connection already may have been under way when the daemon was restarted.
      const wasSent = refusal.code === "delivery_failed";
      expect(refusal).toMatchObject(wasSent ? { applied: "unknown" } : { code: "device_unavailable", applied: "no" });
    }
    expect(computer.command.stderr).toContain("could not be sent, and then metadata failed too");
  });

  it("replaced by another that answers as it likes is seen by readiness, and never crashes the server", async () => {
    const before = await pid();
    // Answers whatever is asked with the line that the file holds, on the daemon's own socket.
    const impostor = `
import os, socket, sys, threading
path = sys.argv[1]
def serve(connection):
    with connection:
        if connection.recv(1 << 20): connection.sendall(open(path + ".answer", "rb").read())
os.unlink(path)
server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen(50)
open(path + ".pid", "w").write(str(os.getpid()))
while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()`;
    await computer.run("sh", "-c", `echo '{"ok":true,"result":{}}' >"$1.answer"`, "sh", computer.socket);
    const start = 'setsid -f python3 -c "$2" "$1" >/dev/null 2>&1';
    await computer.run("sh", "-c", start, "sh", computer.socket, impostor);
    await until(() => computer.run("sh", "-c", 'cat "$1" || :', "sh", `${computer.socket}.pid`), Boolean, {
      what: "it",
    });
    // The connection that was opened ahead is still to the daemon.
    await agent.call("press_key", { scope: "desktop", key: "shift" });
    const answers: [string, string[]][] = [
      ["not JSON\\n", ["internal"]],
      ['{"ok":true,"result":{"content":[]}}\\n{"ok":true}\\n', ["internal"]],
      ['{"ok":true,"result":[1]}\\n', ["internal"]],
      ['{"ok":true,"resu', ["delivery_failed"]],
      ["\\377\\376\\n", ["internal"]],
      ["", ["delivery_failed"]],
    ];
    for (const [answer, codes] of answers) {
      await computer.run("sh", "-c", `printf '${answer}' >"$1.answer"`, "sh", computer.socket);
      const { structuredContent } = await agent.call("press_key", { scope: "desktop", key: "a" });
      expect(codes, answer).toContain(structuredContent?.code);
      expect(structuredContent?.applied).toBe("unknown");
      const ready = await computer.invoke("computer-ready/status");
      expect(ready.body.ready).toBe(false);
    }
    const write = (script: string) => computer.run("sh", "-c", `{ ${script}; } >"$1.answer"`, "sh", computer.socket);
    const xs = (size: string) => `head -c ${size} /dev/zero | tr "\\0" x`;
    await write(xs("65M"));
    const tooLong = await agent.call("press_key", { scope: "desktop", key: "a" });
    expect(tooLong.structuredContent).toMatchObject({ code: "internal", applied: "unknown" });
    await write(`printf '{"ok":true,"result":{"content":[{"type":"text","text":"'; ${xs("60M")}; printf '"}]}}\\n'`);
    const [block] = (await agent.call("get_screen_size", {})).content;
    expect(block?.type === "text" && String(block.text).length).toBe(60 * 1024 * 1024);
    // Its own daemon comes back with its socket, once it is started again.
    const end = `kill -9 $(cat "$1.pid") ${before}; rm -f "$1.answer" "$1.pid"`;
    await computer.run("sh", "-c", end, "sh", computer.socket);
    await until(works, Boolean, { ms: 10_000, what: "the daemon" });
  });
});
