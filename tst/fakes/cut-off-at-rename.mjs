/**
 * Loaded into a process before its program, makes a disk take nothing more, as one does whose other end is gone:
 * CUT_OFF_AT_RENAME is the disk's folder and which of its renames comes too late, such as "/mnt 5".
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { setImmediate } from "node:timers/promises";

const [disk, which] = process.env.CUT_OFF_AT_RENAME.split(" ");
const { rename } = fs;
let seen = 0;

fs.rename = async (...args) => {
  seen += 1;
  if (seen === Number(which)) {
    for (;;) {
      try {
        execFileSync("mount", ["-o", "remount,ro", disk], { stdio: "ignore" });
        break;
      } catch {
        // As long as somebody writes a file there it can't be done.
        await setImmediate();
      }
    }
  }
  return rename(...args);
};
syncBuiltinESMExports();
