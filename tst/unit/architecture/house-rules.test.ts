import { existsSync, readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { brokenRules, type Source } from "./house-rules.js";

const root = resolve(import.meta.dirname, "../../..");

function sourcesUnder(folder: string): Source[] {
  if (!existsSync(resolve(root, folder))) return [];
  return readdirSync(resolve(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return sourcesUnder(path);
    return path.endsWith(".ts") ? [{ path, text: readFileSync(resolve(root, path), "utf8") }] : [];
  });
}

/** The rules that one file breaks, beside others that import nothing. */
function broken(path: string, text: string, ...others: Source[]): string[] {
  return brokenRules([{ path, text }, ...others]);
}

test("the project keeps its own house rules", () => {
  const sources = ["src", "drivers", "bundles"].flatMap(sourcesUnder);
  expect(sources.length).toBeGreaterThan(10);
  expect(brokenRules(sources)).toEqual([]);
});

describe("imports", () => {
  test("that go down the stream are allowed", () => {
    expect(
      broken("src/environment/caller.ts", 'import { A } from "../errors.js";\nimport { B } from "./card.js";'),
    ).toEqual([]);
    expect(broken("src/cli/main.ts", 'import { A } from "../http/app.js";')).toEqual([]);
    expect(broken("drivers/reference/driver.ts", 'import { A } from "../../src/computer/driver.js";')).toEqual([]);
    expect(broken("bundles/shop/shop.ts", 'import { A } from "../../src/index.js";')).toEqual([]);
    expect(broken("src/http/app.ts", 'import { A } from "../mcp/mount.js";')).toEqual([]);
  });

  test.each([
    ["src/errors.ts", "./protocol/card.js"],
    ["src/protocol/card.ts", "../environment/environment.js"],
    ["src/computer/driver.ts", "../http/app.js"],
    ["src/http/app.ts", "../cli/main.js"],
    ["src/http/app.ts", "../index.js"],
    ["src/cli/install.ts", "../../drivers/cua-driver/install.js"],
    ["drivers/cua-driver/driver.ts", "../../bundles/desk/desk.js"],
    ["drivers/cua-driver/driver.ts", "../../src/cli/main.js"],
    ["src/http/app.ts", "../../tst/fakes/daemon.js"],
  ])("from %s to %s are refused", (path, imported) => {
    for (const statement of [
      `import { a } from "${imported}";`,
      `import type { A } from "${imported}";`,
      `import {\n  a,\n  b,\n} from '${imported}';`,
      `import "${imported}";`,
      `const a = await import("${imported}");`,
    ]) {
      expect(broken(path, statement), statement).toHaveLength(1);
    }
  });

  test("in a comment or a string count for nothing", () => {
    expect(
      broken(
        "src/errors.ts",
        '// import { a } from "./http/app.js";\n/* import "./cli/main.js" */\nconst url = "http://x";',
      ),
    ).toEqual([]);
  });

  test("between folders of one row must make no circle", () => {
    const http = { path: "src/http/app.ts", text: 'import { a } from "../mcp/mount.js";' };
    const mcp = 'import { b } from "../desktop/session.js";';
    const desktop = { path: "src/desktop/session.ts", text: 'import { c } from "../http/app.js";' };
    expect(broken("src/mcp/mount.ts", mcp, http)).toEqual([]);
    expect(broken("src/mcp/mount.ts", mcp, http, desktop)).toHaveLength(3);
  });

  test("of the MCP SDK are for src/mcp alone", () => {
    const text = 'import { Server } from "@modelcontextprotocol/sdk/server/index.js";';
    expect(broken("src/mcp/session.ts", text)).toEqual([]);
    expect(broken("src/http/app.ts", text)).toHaveLength(1);
    expect(broken("src/cli/call.ts", text)).toHaveLength(1);
  });
});

describe("files", () => {
  test("named utils, or in a folder of that name, are refused", () => {
    expect(broken("src/http/utils.ts", "")).toHaveLength(1);
    expect(broken("src/http/util/bytes.ts", "")).toHaveLength(1);
    expect(broken("src/http/utility-bill.ts", "")).toEqual([]);
  });

  test("of more than 330 lines are refused", () => {
    expect(broken("src/http/app.ts", "const a = 1;\n".repeat(330))).toEqual([]);
    expect(broken("src/http/app.ts", "const a = 1;\n".repeat(331))).toHaveLength(1);
  });

  test("in a folder that the house doesn't have are refused", () => {
    expect(broken("src/misc/thing.ts", "")).toHaveLength(1);
  });

  test("that export what another file defines are refused, but for src/index.ts, and export * everywhere", () => {
    expect(broken("src/index.ts", 'export { a, type B } from "./errors.js";')).toEqual([]);
    expect(broken("src/http/index.ts", 'export { a } from "./app.js";')).toHaveLength(1);
    expect(broken("src/http/index.ts", 'export type { A } from "./app.js";')).toHaveLength(1);
    expect(broken("src/index.ts", 'export * from "./errors.js";')).toHaveLength(1);
    expect(broken("src/http/app.ts", "export const a = 1;\nconst b = \"a line from 'c'\";")).toEqual([]);
  });
});
