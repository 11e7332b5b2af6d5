/**
 * Loaded into a process before its program, kills it with SIGKILL at one of the steps by which it changes files:
 * DIE_AT_STEP is a kind of step and which of that kind, such as "rename 3". With "half" it dies when half of a file is
 * written, with "renamed" right after a rename; with the others right before the step.
 */
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

const [dieAt, which] = process.env.DIE_AT_STEP.split(" ");
let seen = 0;

function step(kind) {
  if (kind !== dieAt) return;
  seen += 1;
  if (seen === Number(which)) process.kill(process.pid, "SIGKILL");
}

const { mkdir, open, rename } = fs;

fs.mkdir = async (...args) => {
  step("mkdir");
  return mkdir(...args);
};

fs.rename = async (...args) => {
  step("rename");
  await rename(...args);
  step("renamed");
};

fs.open = async (path, flags, ...rest) => {
  if (flags !== "r") step("open");
  const handle = await open(path, flags, ...rest);
  const sync = handle.sync.bind(handle);
  handle.sync = async () => {
    step(flags === "r" ? "sync-folder" : "sync");
    return sync();
  };
  const writeFile = handle.writeFile.bind(handle);
  handle.writeFile = async (bytes) => {
    step("write");
    const half = bytes.length >> 1;
    await handle.write(bytes, 0, half);
    step("half");
    return writeFile(bytes.subarray(half));
  };
  return handle;
};
syncBuiltinESMExports();
