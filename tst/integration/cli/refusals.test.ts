import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentenv, agentenvMain, type Exit, envFolder, linkPackage, RunningCommand } from "../../harness/computer.js";

const DESK = 'type = "computer"\ndriver = "cua-driver"\n';

async function up(args: string[], environment: NodeJS.ProcessEnv = {}): Promise<Exit> {
  return agentenv(["up", ...args], environment).exited;
}

async function upWith(toml: string, args: string[] = []): Promise<Exit> {
  using env = envFolder(toml);
  return await up([env.folder, "--port", "0", ...args]);
}

/** What every refusal has: a message, no stack trace, no success. */
function expectRefusal(exit: Exit, ...says: (string | RegExp)[]): void {
  for (const each of says) expect(exit.stderr).toMatch(each);
  expect(exit.stderr).not.toMatch(/^\s+at .*:\d+/m);
  expect(exit.stdout).toBe("");
  expect(exit.signal).toBeNull();
  expect(exit.code).not.toBe(0);
}

describe("agentenv up refuses, with what to do", () => {
  let taken: ReturnType<typeof createServer>;
  beforeAll(async () => {
    taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => {
    taken.close();
  });

  it("an unknown key, naming the file, the key and what is allowed", async () => {
    expectRefusal(await upWith(`${DESK}colour = "red"\n`), /env\.toml/, /"colour"/, /allowed: type, driver/);
  });

  it("a driver that no alias names", async () => {
    expectRefusal(await upWith('type = "computer"\ndriver = "cua"\n'), /env\.toml/, /driver/, /reference, cua-driver/);
  });

  it("a bad size", async () => {
    expectRefusal(await upWith(`${DESK}[display]\nwidth = -1\nheight = 800\n`), /display\.width/, /320/);
  });

  it("settings that the computer doesn't know, wherever they come from", async () => {
    expectRefusal(await upWith(`${DESK}[settings]\nqueue_wait = 3\n`), /queue_wait/, /queue_wait_s/);
    const exit = await up(["bundles/desk", "--port", "0"], { AGENTENV_COMPUTER_SETTINGS: '{"tap_hold_ms": -5}' });
    expectRefusal(exit, /AGENTENV_COMPUTER_SETTINGS/, /tap_hold_ms/);
  });

  it("a package that isn't installed, and a file that the env doesn't have", async () => {
    const packages = '[apps]\npackages = ["dash", "no-such-package"]\n';
    expectRefusal(
      await upWith(`${DESK}${packages}`),
      /apps\.packages: no-such-package/,
      /apt-get install -y no-such-package/,
    );
    expectRefusal(
      await upWith(`${DESK}[data]\nfiles = { "a.txt" = "../etc/passwd" }\n`),
      /data\.files\."a\.txt"/,
      /env's own folder/,
    );
    expectRefusal(await upWith(`${DESK}[data]\nfiles = { "/etc/x" = "env.toml" }\n`), /data\.files\."\/etc\/x"/);
  });

  it("a folder without an env.toml", async () => {
    expectRefusal(await up(["/nowhere/at/all"]), /no folder \/nowhere\/at\/all/, /bundles\/desk/);
  });

  it("what is no folder with an env.toml that is a file, whatever it is", async () => {
    using env = envFolder(DESK);
    const at = (name: string) => join(env.folder, name);
    writeFileSync(at("file"), "");
    mkdirSync(at("deep/env.toml"), { recursive: true });
    symlinkSync("loop", at("loop"));
    mkdirSync(at("looped"));
    symlinkSync("env.toml", at("looped/env.toml"));
    expectRefusal(await up([at("file")]), /\/file is a file, and no folder/, /name a folder/);
    expectRefusal(await up([at("deep")]), /\/deep\/env\.toml is a folder, and no file/, /name a folder/);
    expectRefusal(await up([at("loop")]), /\/loop is a broken link/, /name a folder/);
    expectRefusal(await up([at("looped/env.toml")]), /\/looped\/env\.toml is a broken link/, /name a folder/);
    const put = async (name: string) => agentenv(["put", at(name)]).exited;
    expectRefusal(await put("file"), /\/file is a file, and no folder/, /name the folder/);
    expectRefusal(await put("deep"), /\/deep\/env\.toml is a folder, and no file/, /a bundle is a folder/);
    expectRefusal(await put("loop"), /\/loop is a link, and no folder/, /name the folder/);
    expectRefusal(await put("looped"), /\/looped\/env\.toml is a link, and no file/, /a bundle is a folder/);
  });

  it("a user who does not exist for a bundle of its own, found by its folder or its file, wherever the person stands", async () => {
    for (const named of ["bundles/desk", "bundles/desk/env.toml"]) {
      const exit = await up([named, "--port", "0", "--user", "nobody-of-that-name"], { INIT_CWD: "/" });
      expectRefusal(exit, /nobody-of-that-name/);
    }
  });

  it("a skill of another folder than its own, as put does", async () => {
    using env = envFolder(`${DESK}[skills]\ninclude = ["../other/skill"]\n`);
    const says = [/env\.toml: skills\.include: "\.\.\/other\/skill" lies outside of the env's folder/, /skills add/];
    expectRefusal(await up([env.folder, "--port", "0"]), ...says);
    const named = join(env.folder, "bundle");
    mkdirSync(named);
    writeFileSync(join(named, "env.toml"), `${DESK}[skills]\ninclude = ["../other/skill"]\n`);
    expectRefusal(await agentenv(["put", named]).exited, ...says);
  });

  it("a taken port", async () => {
    const { port } = taken.address() as AddressInfo;
    expectRefusal(await up(["bundles/desk", "--port", String(port)]), new RegExp(`port ${port} .*taken`), /--port/);
  });

  it("a session user that doesn't exist", async () => {
    expectRefusal(
      await up(["bundles/desk", "--port", "0", "--user", "nobody-of-that-name"]),
      /nobody-of-that-name/,
      /useradd/,
    );
    if (process.getuid?.() !== 0) return;
    expectRefusal(
      await up(["bundles/desk", "--port", "0", "--user", "no body; it's"]),
      /useradd .* 'no body; it'\\''s'$/m,
    );
  });

  it("a class that is no environment of this very agent-env, which would serve nothing", async () => {
    using env = envFolder('type = "class"\nmodule = "env.mjs#Mine"\n');
    writeFileSync(join(env.folder, "env.mjs"), "export class Mine {}\n");
    expectRefusal(await up([env.folder, "--port", "0"]), /env\.mjs#Mine doesn't extend/, /npx agentenv up/);
  });

  it("a class outside of the env's folder, by its name or by a link", async () => {
    const says = [/env\.toml: module: ".*#Shop" leads out of the env's folder/, /keep the class/];
    expectRefusal(await upWith('type = "class"\nmodule = "../../x/shop.ts#Shop"\n'), ...says);
    using env = envFolder('type = "class"\nmodule = "shop.mjs#Shop"\n');
    symlinkSync(agentenvMain, join(env.folder, "shop.mjs"));
    expectRefusal(await up([env.folder, "--port", "0"]), ...says);
  });

  it.each([
    ["bad.mjs", "export class Mine {}\n\nexport class {\n", 3, /SyntaxError: /, /correct its syntax there/],
    ["bad.mjs", 'export class Mine {}\n\n\nthrow new Error("not today");\n', 4, /not today/, /correct what it does/],
    [
      "bad.mjs",
      'import "./helper.mjs";\nexport class Mine {}\n',
      2,
      /TypeError: no/,
      /correct what it does/,
      "helper.mjs",
    ],
    ["bad.ts", "export class Mine {\n  @tool() x() {}\n}\n", 2, /SyntaxError/, /has to be built first/],
    [
      "bad.mjs",
      'import "no-such-package";\nexport class Mine {}\n',
      undefined,
      /no-such-package/,
      /install the packages/,
    ],
  ])("%s with a fault, naming the author's own file and line: %j", async (name, text, line, says, hint, at = name) => {
    using env = envFolder(`type = "class"\nmodule = "${name}#Mine"\n`);
    writeFileSync(join(env.folder, name), text);
    writeFileSync(join(env.folder, "helper.mjs"), '\nthrow new TypeError("no");\n');
    const exit = await up([env.folder, "--port", "0"]);
    const where = `${join(env.folder, at)}${line === undefined ? "" : `, line ${line}`}: it can't be loaded: `;
    expectRefusal(exit, says, hint);
    expect(exit.stderr).toContain(where);
    expect(exit.stderr).not.toContain("/program/");
  });

  it.each([
    ["constructor() {\n    super();\n    missing.call();\n  }", 5, /ReferenceError: missing is not defined/],
    ['servedTools() {\n    throw new Error("no tools today");\n  }', 4, /no tools today/],
  ])(
    "a class that throws while it is started, as its author's own fault, with the line: %j",
    async (member, line, says) => {
      using env = envFolder('type = "class"\nmodule = "env.mjs#Mine"\n');
      const text = `import { Environment } from "agent-env";\nexport class Mine extends Environment {\n  ${member}\n}\n`;
      writeFileSync(join(env.folder, "env.mjs"), text);
      linkPackage(env.folder);
      const exit = await up([env.folder, "--port", "0"]);
      expectRefusal(exit, says, /correct what it does/);
      expect(exit.stderr).toContain(`${join(env.folder, "env.mjs")}, line ${line}: `);
      expect(exit.stderr).not.toMatch(/fault of agentenv|\/program\//);
      const asked = await up([env.folder, "--port", "0"], { AGENTENV_DEBUG: "1" });
      expect(asked.stderr).toMatch(/^\s+at .*env\.mjs:\d+/m);
    },
  );

  it("a machine with neither a display nor Xvfb", async () => {
    // In a mount namespace of its own, where Xvfb is not a program.
    const hide = 'mount --bind /dev/null /usr/bin/Xvfb && exec "$@"';
    const start = [process.execPath, agentenvMain, "up", "bundles/desk", "--port", "0"];
    const namespace = ["--mount", ...(process.getuid?.() === 0 ? [] : ["--map-root-user"])];
    const child = spawn("unshare", [...namespace, "sh", "-c", hide, "sh", ...start], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    expectRefusal(await new RunningCommand(child).exited, /Xvfb/, /apt-get install .*xvfb/);
  });

  it("a display where no X server answers and none can be started", async () => {
    const exit = await up(["bundles/desk", "--port", "0", "--display", "env"], { DISPLAY: "" });
    expectRefusal(exit, /DISPLAY/);
  });

  it("an address beyond loopback without tokens", async () => {
    expectRefusal(await up(["bundles/desk", "--port", "0", "--host", "0.0.0.0"]), /--tokens/, /--insecure/);
  });

  it("a log file that the session user can't write", async () => {
    const exit = await up(["bundles/desk", "--port", "0", "--log-file", "/nowhere/at/all.log"]);
    expectRefusal(exit, /log file \/nowhere\/at\/all\.log/, /session user/);
  });

  it("an option that there isn't, and a port that is no port", async () => {
    expectRefusal(await up(["bundles/desk", "--prot", "1"]), /--prot/, /--port/);
    expectRefusal(await up(["bundles/desk", "--port", "eighty"]), /--port/, /0 to 65535/);
  });
});

describe("a folder that can't be made is refused at once, with what to do", () => {
  /** Every new name there is answered with ENOENT. */
  const NEVER = "/proc/agentenv/x";

  it("by init", async () => {
    expectRefusal(
      await agentenv(["init", NEVER]).exited,
      /\/proc\/agentenv\/x can't be written: ENOENT/,
      /choose a folder/,
    );
  });

  it("by put, before it starts anything", async () => {
    const exit = await agentenv(["put", "bundles/reference", "--store", `file://${NEVER}`]).exited;
    expectRefusal(exit, /the store file:\/\/\/proc\/agentenv\/x can't be written: ENOENT/, /--store/);
    expect(exit.stderr).not.toMatch(/starting/);
  });

  it("by skills get and skills add", async () => {
    const exit = await agentenv(["skills", "add", "skills/computer", "--store", `file://${NEVER}`]).exited;
    expectRefusal(exit, /the store file:\/\/\/proc\/agentenv\/x can't write/, /--store/);
    using store = envFolder("");
    const url = `file://${store.folder}`;
    const { stdout } = await agentenv(["skills", "add", "skills/computer", "--store", url]).exited;
    const got = await agentenv(["skills", "get", stdout.trim(), "--out", NEVER, "--store", url]).exited;
    expectRefusal(got, /can't be written to \/proc\/agentenv\/x/, /name a folder/);
  });

  it("by up and run, of the data folder", async () => {
    const data = { AGENTENV_DATA: NEVER };
    const exit = await agentenv(["driver", "install", "cua-driver"], data).exited;
    expectRefusal(exit, /cua-driver can't be installed in \/proc\/agentenv\/x/, /AGENTENV_DATA/);
    if (process.getuid?.() === 0) {
      expectRefusal(
        await up(["bundles/reference", "--port", "0"], data),
        /the data folder can't be used/,
        /AGENTENV_DATA/,
      );
    }
  });
});

describe("agentenv init", () => {
  it("refuses a file, and what lies below one", async () => {
    using env = envFolder(DESK);
    const file = join(env.folder, "env.toml");
    expectRefusal(await agentenv(["init", file]).exited, /env\.toml is a file/, /name a folder/);
    expectRefusal(await agentenv(["init", join(file, "x")]).exited, /env\.toml\/x can't be written: ENOTDIR/, /choose/);
  });

  it("prints a line that a shell reads as it is meant, whatever the folder is called", async () => {
    using env = envFolder(DESK);
    const folder = join(env.folder, "Weird Näme! it's");
    const { stdout, code } = await agentenv(["init", folder]).exited;
    expect(code).toBe(0);
    const [line = ""] = stdout.split(" && ");
    expect(execFileSync("sh", ["-c", `${line} && pwd -P && ls`], { encoding: "utf8" })).toContain("env.test.ts");
  });
});
