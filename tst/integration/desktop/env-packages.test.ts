import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Staged, stage } from "../../../src/desktop/staging.js";
import { packageRoot } from "../../../src/package-root.js";
import { isRoot, needsRoot, sessionUser } from "../../harness/desktop.js";

const lab = mkdtempSync(join(tmpdir(), "packages-"));
chmodSync(lab, 0o755);
afterAll(() => rmSync(lab, { recursive: true, force: true }));

const dataDir = join(lab, "data");
const stageEnv = (folder: string, programDir = packageRoot) =>
  stage({ dataDir, programDir, folders: [folder], gid: sessionUser.gid });

type RecordOf = Record<string, { dev?: boolean; link?: boolean; integrity?: string }>;
const vouched = { integrity: "sha512-of-it" };

/** A project's folder with `node_modules` as npm would leave it: a package's module exports its name and what `says`. */
function project(name: string, packages: RecordOf, says = ""): string {
  const folder = join(lab, name);
  mkdirSync(join(folder, "node_modules"), { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, "package.json"), "{}");
  writeFileSync(join(folder, "node_modules/.package-lock.json"), JSON.stringify({ packages }));
  for (const [path, { link }] of Object.entries(packages)) if (!link) writePackage(join(folder, path), says);
  return folder;
}

function writePackage(folder: string, says = ""): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "exports": "./index.mjs" }');
  writeFileSync(join(folder, "index.mjs"), `export default ${JSON.stringify(basename(folder) + says)};\n`);
}

/** What a module in an env's copy prints, run by the session user. */
function run(staged: Staged, folder: string, source: string): string {
  const copy = staged.locate(join(folder, "package.json"));
  const become = ["--reuid", String(sessionUser.uid), "--regid", String(sessionUser.gid), "--init-groups"];
  const script = `import { createRequire } from "node:module";
    const load = (name) => import(createRequire(${JSON.stringify(copy)}).resolve(name));
    ${source}`;
  const args = [...become, staged.node, "--input-type=module", "-e", script];
  return execFileSync("setpriv", args, { cwd: "/", encoding: "utf8" }).trim();
}

describe.runIf(isRoot)(`the packages that an env has installed for itself, for the session user${needsRoot}`, () => {
  it("are found by its modules: its own first, then the program's, and one agent-env for all", () => {
    const folder = project("mine", {
      "node_modules/zod": vouched,
      "node_modules/@scope/plugin": vouched,
      "node_modules/agent-env": vouched,
      "node_modules/typescript": { ...vouched, dev: true },
    });
    const staged = stageEnv(folder);
    const said = run(
      staged,
      folder,
      `const own = await load("zod");
       const plugin = await load("@scope/plugin");
       const { AgentEnvError } = await load("agent-env");
       const fastify = await load("fastify");
       console.log(own.default, plugin.default, AgentEnvError.name, typeof fastify.default);`,
    );
    expect(said).toBe("zod plugin AgentEnvError function");
    const program = realpathSync(join(staged.locate(folder), "node_modules/agent-env"));
    expect(program).toBe(realpathSync(join(staged.locate(join(packageRoot, "package.json")), "..")));
    expect(readdirSync(join(staged.locate(folder), "node_modules")).sort()).toEqual(["@scope", "agent-env", "zod"]);
  });

  it("are copied once, and again only when they change", () => {
    const packages = { "node_modules/fixed": vouched, "node_modules/edited": {} };
    const folder = project("changing", packages);
    const first = stageEnv(folder);
    const begun = performance.now();
    expect(stageEnv(folder).inUse).toEqual(first.inUse);
    expect(performance.now() - begun).toBeLessThan(250);

    writeFileSync(join(folder, "env.js"), "// another line\n");
    const edited = stageEnv(folder).inUse;
    expect(edited.filter((path) => !first.inUse.includes(path))).toHaveLength(1);
    writePackage(join(folder, "node_modules/edited"), ", other than before");
    const changed = stageEnv(folder);
    expect(changed.inUse.filter((path) => !edited.includes(path))).toHaveLength(2);
    expect(run(changed, folder, 'console.log((await load("edited")).default)')).toBe("edited, other than before");
  });

  it("are those of the project around it where it has none itself", () => {
    const around = project("around", { "node_modules/shared": vouched });
    const folder = join(around, "envs", "one");
    mkdirSync(folder, { recursive: true });
    const staged = stageEnv(folder);
    const copy = staged.locate(join(folder, "env.toml"));
    const become = ["--reuid", String(sessionUser.uid), "--regid", String(sessionUser.gid), "--init-groups"];
    const script = `console.log(require("node:module").createRequire(${JSON.stringify(copy)}).resolve("shared"))`;
    const said = execFileSync("setpriv", [...become, staged.node, "-e", script], { cwd: "/", encoding: "utf8" });
    expect(said).toMatch(/env-packages-\w+\/node_modules\/shared\/index\.mjs\n$/);
  });

  it("may be a workspace of the same project, and not what lies outside of it", () => {
    const folder = project("linking", { "node_modules/part": { link: true } });
    writePackage(join(folder, "parts/part"));
    symlinkSync("../parts/part", join(folder, "node_modules/part"));
    expect(run(stageEnv(folder), folder, 'console.log((await load("part")).default)')).toBe("part");

    const out = project("linking-out", { "node_modules/secret": { link: true } });
    symlinkSync("/root", join(out, "node_modules/secret"));
    expect(() => stageEnv(out)).toThrow(/secret is a link out of .*linking-out/);
    for (const [name, link] of [
      ["unsaid", "node_modules/unsaid"],
      ["@scope/unsaid", "node_modules/@scope"],
    ] as const) {
      const unsaid = project(`unsaid-${basename(link)}`, {});
      const lock = JSON.stringify({ packages: { [`node_modules/${name}`]: vouched } });
      writeFileSync(join(unsaid, "node_modules/.package-lock.json"), lock);
      mkdirSync(join(lab, "elsewhere", basename(name)), { recursive: true });
      symlinkSync(join(lab, "elsewhere", link.includes("@") ? "" : "unsaid"), join(unsaid, link));
      expect(() => stageEnv(unsaid)).toThrow(/is a symbolic link, which is not followed/);
    }
    expect(readdirSync(join(dataDir, "program")).filter((each) => each.startsWith("."))).toEqual([]);
  });

  it("can't lead out of node_modules by their names", () => {
    const folder = project("traversing", {});
    const lock = JSON.stringify({ packages: { "node_modules/../../../etc": vouched, "node_modules/..": vouched } });
    writeFileSync(join(folder, "node_modules/.package-lock.json"), lock);
    expect(readdirSync(join(stageEnv(folder).locate(folder), "node_modules"))).toEqual(["agent-env"]);
  });

  it("are refused where they are too large, whatever the folder itself holds", () => {
    const folder = project("large", { "node_modules/data": vouched });
    ftruncateSync(openSync(join(folder, "node_modules/data/weights"), "w"), 1025 * 1024 * 1024);
    expect(() => stageEnv(folder)).toThrow(/node_modules is too large to be copied/);
    expect(readdirSync(join(dataDir, "program")).filter((each) => each.startsWith("."))).toEqual([]);
  });

  it("are all that lies in node_modules where another installer than npm made it", () => {
    const folder = project("other", {});
    rmSync(join(folder, "node_modules/.package-lock.json"));
    writePackage(join(folder, "node_modules/.store/deep"));
    symlinkSync(".store/deep", join(folder, "node_modules/deep"));
    writePackage(join(folder, "node_modules/agent-env"));
    const staged = stageEnv(folder);
    expect(run(staged, folder, 'console.log((await load("deep")).default)')).toBe("deep");
    expect(run(staged, folder, 'console.log(typeof (await load("agent-env")).Environment)')).toBe("function");
  });
});

describe.runIf(isRoot)(`a program that is a package itself, for the session user${needsRoot}`, () => {
  /** The built program with the packages that it needs inside of it or beside it. */
  function install(at: string, modules: string): void {
    for (const part of ["dist", "package.json", "mcp.json", "skills", "bundles"]) {
      cpSync(join(packageRoot, part), join(at, part), { recursive: true });
    }
    mkdirSync(modules, { recursive: true });
    for (const name of ["zod", "fastify"]) writePackage(join(modules, name), " of this installation");
  }

  it("is one of the packages, with those that were installed beside it", () => {
    const folder = project("installed", { "node_modules/mine": vouched, "node_modules/typescript": { dev: true } });
    const program = join(folder, "node_modules/agent-env");
    install(program, join(folder, "node_modules"));
    const packages: RecordOf = {
      "node_modules/agent-env": { ...vouched, dev: true },
      "node_modules/zod": { ...vouched, dev: true },
      "node_modules/mine": vouched,
    };
    writeFileSync(join(folder, "node_modules/.package-lock.json"), JSON.stringify({ packages }));
    const staged = stageEnv(folder, program);
    expect(staged.inUse).toHaveLength(2);
    expect(existsSync(staged.locate(join(program, "dist/src/cli/main.js")))).toBe(true);
    const said = run(staged, folder, 'console.log((await load("zod")).default, (await load("mine")).default)');
    expect(said).toBe("zod of this installation mine");
  });

  it("brings the packages that lie inside of it, where npm installed it for the whole machine", () => {
    const program = join(lab, "global/node_modules/agent-env");
    install(program, join(program, "node_modules"));
    const folder = project("globally", { "node_modules/mine": vouched });
    const staged = stageEnv(folder, program);
    const said = run(staged, folder, 'console.log((await load("mine")).default, (await load("fastify")).default)');
    expect(said).toBe("mine fastify of this installation");
  });
});
