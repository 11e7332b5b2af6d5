import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Process, remainsOf, removeRemains } from "../../../src/desktop/remains.js";

const MINE = "HOME=/h\0XDG_RUNTIME_DIR=/run/agentenv/1\0DISPLAY=:1\0";
const OTHERS = "HOME=/h\0XDG_RUNTIME_DIR=/run/agentenv/12\0";
const at = (pid: number, parent: number, environment = ""): Process => ({ pid, parent, environment });
/** The guardian is this very process, the subreaper its parent. */
const { pid: guardian, ppid: subreaper } = process;
const family = [at(subreaper, 1), at(guardian, subreaper)];

test("every descendant of the subreaper is a remain, at any depth, and neither it nor the guardian is", () => {
  const processes = [
    ...family,
    at(900_001, subreaper),
    at(900_002, 900_001),
    at(900_003, 900_002),
    at(900_004, guardian),
  ];
  expect(remainsOf(processes, subreaper, "/run/agentenv/1").sort()).toEqual([900_001, 900_002, 900_003, 900_004]);
});

test("what was started with the computer's runtime folder is a remain wherever it went, and nobody else's is", () => {
  const processes = [...family, at(900_001, 1, MINE), at(900_002, 1, OTHERS), at(900_003, 1)];
  expect(remainsOf(processes, subreaper, "/run/agentenv/1")).toEqual([900_001]);
});

test("when the subreaper is gone, whoever has its pid now is left alone with its children", () => {
  const stranger = 900_000;
  const processes = [...family, at(stranger, 1), at(900_001, stranger), at(900_002, guardian)];
  expect(remainsOf(processes, stranger, "/run/agentenv/1")).toEqual([900_002]);
});

test("what the server named is removed, the runtime folder is emptied, and what is gone already is no trouble", async () => {
  const folder = mkdtempSync(join(tmpdir(), "remains-"));
  const [inside, lock] = [join(folder, "run"), join(folder, ".X9-lock")];
  mkdirSync(join(inside, "at-spi"), { recursive: true });
  writeFileSync(join(inside, "at-spi", "bus"), "");
  writeFileSync(lock, "");
  await removeRemains(inside, [join(folder, "not-there"), lock]);
  expect([existsSync(inside), existsSync(join(inside, "at-spi")), existsSync(lock)]).toEqual([true, false, false]);
  await removeRemains(join(folder, "never"), []);
});

test("a named socket on which another program answers by now is left alone, and a dead one is removed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "remains-"));
  const [theirs, dead] = [join(folder, "X1"), join(folder, "X2")];
  execFileSync("python3", ["-c", "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", dead]);
  const server = createServer().listen(theirs);
  await once(server, "listening");
  await removeRemains(join(folder, "run"), [theirs, dead]);
  expect([existsSync(theirs), existsSync(dead)]).toEqual([true, false]);
  server.close();
});
