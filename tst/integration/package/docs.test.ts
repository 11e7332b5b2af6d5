import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Extractor, ExtractorConfig, type ExtractorMessage, type IConfigFile } from "@microsoft/api-extractor";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packageRoot } from "../../../src/package-root.js";

const run = promisify(execFile);

interface ApiItem {
  kind: string;
  name: string;
  docComment?: string;
  members?: ApiItem[];
}

let folder: string;
let items: ApiItem[];
const complaints: string[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "docs-"));
  cpSync(join(packageRoot, "package.json"), join(folder, "package.json"));
  symlinkSync(join(packageRoot, "node_modules"), join(folder, "node_modules"));
  const tsc = join(packageRoot, "node_modules/typescript/bin/tsc");
  const declarations = ["--emitDeclarationOnly", "--incremental", "false", "--outDir", join(folder, "dist")];
  await run(process.execPath, [tsc, "-p", join(packageRoot, "tsconfig.json"), ...declarations]);
  const config = JSON.parse(readFileSync(join(packageRoot, "scripts/docs/api-extractor.json"), "utf8")) as IConfigFile;
  const model = join(folder, "api.json");
  Extractor.invoke(
    ExtractorConfig.prepare({
      configObject: {
        ...config,
        projectFolder: folder,
        mainEntryPointFilePath: join(folder, "dist/src/index.d.ts"),
        docModel: { enabled: true, apiJsonFilePath: model },
      },
      configObjectFullPath: undefined,
      packageJsonFullPath: join(folder, "package.json"),
    }),
    {
      localBuild: true,
      messageCallback: (message: ExtractorMessage) => {
        message.handled = true;
        if (message.logLevel === "warning" || message.logLevel === "error") complaints.push(message.text);
      },
    },
  );
  items = (JSON.parse(readFileSync(model, "utf8")) as { members: { members: ApiItem[] }[] }).members[0]?.members ?? [];
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe("the API reference that npm run docs makes", () => {
  it("has every export of the public surface, each with a doc comment", () => {
    const index = readFileSync(join(packageRoot, "src/index.ts"), "utf8");
    const exported = [...index.matchAll(/export (?:type )?\{([^}]*)\}/g)].flatMap(([, names = ""]) =>
      names.split(",").flatMap((name) => name.trim().replace(/^type /, "") || []),
    );
    expect(exported.length).toBeGreaterThan(50);
    // A name that the language has too, such as ErrorOptions, is told from it by a number.
    const documented = new Set(items.map(({ name }) => name.replace(/_\d+$/, "")));
    expect(exported.filter((name) => !documented.has(name))).toEqual([]);
    expect(items.filter(({ docComment = "" }) => docComment.trim() === "").map(({ name }) => name)).toEqual([]);
  });

  it("says what each hook of an environment and each part of a tool's context is for", () => {
    const undocumented = (name: string, kind: RegExp) =>
      items
        .find((item) => item.name === name)
        ?.members?.filter((member) => kind.test(member.kind) && (member.docComment ?? "").trim() === "")
        .map((member) => member.name);
    expect(undocumented("Environment", /^(Method|Property)$/)).toEqual([]);
    expect(undocumented("ToolContext", /^MethodSignature$/)).toEqual([]);
  });

  it("is written by npm run docs, a page for every export", async () => {
    await run(process.execPath, [join(packageRoot, "scripts/docs/docs.mjs")], { cwd: packageRoot });
    const pages = new Set(readdirSync(join(packageRoot, ".agentenv/docs/api")));
    const page = ({ name }: ApiItem) => `agent-env.${name.toLowerCase()}.md`;
    expect(items.map(page).filter((each) => !pages.has(each))).toEqual([]);
    expect(pages).toContain("index.md");
  });

  it("finds nothing to complain of: no type that is used and not exported, no link to nowhere", () => {
    expect(complaints).toEqual([]);
  });
});
