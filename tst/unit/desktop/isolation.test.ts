import { expect, test } from "vitest";
import { ISOLATIONS, isolated } from "../../../src/desktop/isolation.js";

const account = { name: "someone", uid: 4321, gid: 4322, home: "/home/someone", shell: "/bin/sh" };
const asRoot = process.getuid?.() === 0;

test.each(ISOLATIONS)(
  "with isolation %s a tini has the pid that everybody knows, and the command is what it runs",
  (isolation) => {
    const argv = isolated(isolation, account, ["node", "guardian.js"]);
    expect(argv.slice(-2)).toEqual(["node", "guardian.js"]);
    // What comes before the tini only sets ids and then becomes it.
    const first = argv.indexOf("tini");
    expect(argv.slice(0, first).every((word) => word === "setpriv" || /^(-|\d)/.test(word))).toBe(true);
  },
);

test.each(ISOLATIONS)(
  "with isolation %s the user is changed once, and the command hears when a parent dies",
  (isolation) => {
    const line = isolated(isolation, account, ["node"]).join(" ");
    expect(line.split("--reuid 4321 --regid 4322").length - 1).toBe(asRoot ? 1 : 0);
    expect(line).toMatch(
      /--pdeathsig TERM -- tini -s -- |--kill-child=TERM .*tini -s -- node|--pdeathsig TERM -- node/,
    );
  },
);

test("a namespace ends with the process around it, and has a /proc of its own", () => {
  for (const isolation of ["pid", "user"] as const) {
    const line = isolated(isolation, account, ["node"]).join(" ");
    expect(line).toMatch(
      /tini -s -g -- setpriv --pdeathsig KILL -- unshare .*--pid --fork --kill-child=\w+ --mount-proc/,
    );
  }
});
