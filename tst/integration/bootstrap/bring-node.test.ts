import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Clone, type Ended } from "./clone.js";

const VERSION = "99.1.0";
const NAME = `node-linux-${process.arch}`;

let clone: Clone;
let registry: Server;
let asked: string[];

/** A clone for which the Node at hand is too old, and a registry that npm is set up with. */
beforeEach(async () => {
  clone = new Clone();
  asked = [];
  clone.write("package/bin/node", `#!/bin/sh\nexec ${process.execPath} "$@"\n`);
  clone.write("package/package.json", JSON.stringify({ name: NAME, version: VERSION }));
  spawnSync("chmod", ["755", clone.path("package/bin/node")]);
  spawnSync("tar", ["-czf", "served.tgz", "package"], { cwd: clone.folder });
  pin(integrity());

  registry = createServer((request, response) => {
    asked.push(request.url ?? "");
    if (request.url?.endsWith(".tgz")) response.end(readFileSync(clone.path("served.tgz")));
    else {
      const tarball = `http://${request.headers.host}/${NAME}/-/${NAME}-${VERSION}.tgz`;
      const version = { name: NAME, version: VERSION, dist: { tarball, integrity: integrity() } };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ name: NAME, "dist-tags": { latest: VERSION }, versions: { [VERSION]: version } }));
    }
  });
  await new Promise<void>((settle) => registry.listen(0, "127.0.0.1", settle));
});

afterEach(async () => {
  await new Promise((settle) => registry.close(settle));
  clone.remove();
});

function integrity(): string {
  return `sha512-${createHash("sha512")
    .update(readFileSync(clone.path("served.tgz")))
    .digest("base64")}`;
}

function pin(digest: string): void {
  const pinned = { minimum: "99.0.0", version: VERSION, integrity: { [process.arch]: digest } };
  clone.write("scripts/node.json", JSON.stringify(pinned));
}

function setUp(): Promise<Ended> {
  const { port } = registry.address() as AddressInfo;
  const env = { npm_config_registry: `http://127.0.0.1:${port}/`, npm_config_cache: clone.path("npm-cache") };
  return clone.setUp("tools", { env });
}

test("a Node that is too old is replaced by the pinned one, from the registry that npm is set up with", async () => {
  const { code, stderr } = await setUp();
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stderr).toMatch(/^Node 99\.1\.0 …\nNode 99\.1\.0 done in /);
  expect(asked).toContain(`/${NAME}/-/${NAME}-${VERSION}.tgz`);
  expect(readlinkSync(clone.path(".agentenv/bin/node"))).toBe(clone.path(`.agentenv/node/${VERSION}/bin/node`));
  expect(readdirSync(clone.path(".agentenv/node"))).toEqual([VERSION]);
  expect(statSync(clone.path(`.agentenv/node/${VERSION}`)).mode & 0o777).toBe(0o755);
  expect((await setUp()).stderr).toBe("");
});

test("what a killed download left is removed, and a Node is never half there", async () => {
  clone.write(".agentenv/node/partial-dead/bin/node", "half");
  expect((await setUp()).code).toBe(0);
  expect(readdirSync(clone.path(".agentenv/node"))).toEqual([VERSION]);
});

test("a Node with another digest than the pinned one is refused, with both digests, and thrown away", async () => {
  pin("sha512-somethingelse==");
  const { code, stderr } = await setUp();
  expect(code).toBe(1);
  expect(stderr).toContain("pinned   sha512-somethingelse==");
  expect(stderr).toContain(`received ${integrity()}`);
  expect(existsSync(clone.path(`.agentenv/node/${VERSION}`))).toBe(false);
  expect(existsSync(clone.path("node_modules"))).toBe(false);
});
