import { expect, test } from "vitest";
import { ISOLATIONS, isolated } from "../../../src/desktop/isolation.js";

const account = { name: "someone", uid: 4321, gid: 4322, home: "/home/someone", shell: "/bin/sh" };
const asRoot = process.getuid?.() === 0;
const chain = (isolation: (typeof ISOLATIONS)[number]) =>
  isolated(isolation, account, {
    command: ["node", "guardian.js"],
    runtimeDir: "/run/agentenv/1",
    lock: "/run/agentenv/1.lock",
    cleanUp: ["node", "clean-up.js"],
  });

test.each(ISOLATIONS)(
  "with isolation %s a tini has the pid that everybody knows, and the command is what it runs",
  (isolation) => {
    const argv = chain(isolation);
    expect(argv.slice(-2)).toEqual(["node", "guardian.js"]);
    // What comes before the tini only sets ids and then becomes it.
    const first = argv.indexOf("tini");
    expect(argv.slice(0, first).every((word) => word === "setpriv" || /^(-|\d)/.test(word))).toBe(true);
  },
);

test.each(ISOLATIONS)("with isolation %s what cleans up has the user of the computer", (isolation) => {
  const argv = chain(isolation);
  const changes = argv.flatMap((word, index) => (word === "--reuid" ? [index] : []));
  expect(changes).toHaveLength(asRoot ? 1 : 0);
  const cleaning = argv.indexOf("clean-up.js") - 2;
  const before = asRoot && isolation === "pid" ? /^setpriv --reuid 4321 --regid 4322 .*--$/ : /^$/;
  if (isolation === "none") expect(argv).not.toContain("clean-up.js");
  else expect(argv[cleaning]).toMatch(before);
});

test("the computer has a namespace of its own inside another one that ends with the process around it", () => {
  for (const isolation of ["pid", "user"] as const) {
    const line = chain(isolation).join(" ");
    expect(line).toMatch(
      /tini -s -g -- setpriv --pdeathsig KILL -- unshare .*--pid --fork --kill-child=TERM tini -s -g -- sh -c /,
    );
    expect(line).toMatch(/clean-up.js unshare .*--pid --fork --kill-child=KILL --mount-proc .*tini -s -- node/);
  }
});
