import { hash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { McpClient } from "../../../src/mcp/client.js";
import { packageRoot } from "../../../src/package-root.js";
import { CARD_PATH } from "../../../src/protocol/card.js";
import { SkillEntry } from "../../../src/protocol/skill.js";
import { digestOf } from "../../../src/skills/skill.js";
import { agentenv, envFolder, type Ready } from "../../harness/computer.js";
import { sessionUser } from "../../harness/desktop.js";
import { S3Server } from "../../harness/rclone.js";

const BUNDLE = join(packageRoot, "tst/integration/computer/cua-driver");

interface Shown {
  id: string;
  files: { path: string; sha256: string }[];
  card: { capabilities: { extensions: { uri: string; params?: Record<string, unknown> }[] } };
  platforms: Record<
    string,
    { driver: { alias: string; version: string; executable: { size: number; sha256: string } } }
  >;
  skills: { name: string; digest: string }[];
  metadata: { validated_boot: { at: string; platform: { arch: string }; report: { passed: boolean; level: string } } };
}

let folder: string;
let server: S3Server;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "put-"));
  chmodSync(folder, 0o755);
  Object.assign(process.env, S3Server.credentials);
  server = await S3Server.start();
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const stores = {
  folder: () => ({ url: pathToFileURL(join(folder, "store")).href, objects: join(folder, "store") }),
  s3: () => ({ url: server.url("envs"), objects: join(server.folder, "envs") }),
};
const ids = new Set<string>();

async function json<T>(args: string[], environment: NodeJS.ProcessEnv = {}): Promise<T> {
  const exit = await agentenv([...args, "--json"], environment).exited;
  expect(exit.code, exit.stderr).toBe(0);
  return JSON.parse(exit.stdout) as T;
}

/** A data folder in which there is nothing yet, which the session user can enter. */
function emptyData(name: string): string {
  const data = join(folder, `data-${name}`);
  mkdirSync(data, { mode: 0o755 });
  return data;
}

async function cardOf({ url }: Ready): Promise<Shown["card"]> {
  return (await (await fetch(url + CARD_PATH)).json()) as Shown["card"];
}

describe.each(Object.entries(stores))("the test bundle in a store that is a %s", (name, open) => {
  let shown: Shown;

  it("is put once its computer was started and probed at full, with all that it is and needs", async () => {
    const { url } = open();
    const put = await json<{ envs: { id: string; env: string; added: boolean }[] }>(["put", BUNDLE, "--store", url]);
    expect(put).toMatchObject({ store: url, envs: [{ env: "cua-driver/desk", added: true }] });
    const [{ id } = { id: "" }] = put.envs;
    ids.add(id);
    shown = await json<Shown>(["envs", "show", id.slice(7, 15), "--store", url]);
    expect(shown.id).toBe(id);
    expect(shown.files.map(({ path }) => path)).toEqual(["env.toml", "seeds/welcome.txt"]);
    const pin = JSON.parse(readFileSync(join(packageRoot, "mcp.json"), "utf8"));
    for (const arch of ["amd64", "arm64"]) {
      expect(shown.platforms[`linux/${arch}`]?.driver).toEqual({
        alias: "cua-driver",
        version: pin.driver.version,
        executable: pin.arches[arch].executable,
      });
    }
    expect(shown.skills.map((skill) => skill.name)).toEqual(["computer"]);
    expect(shown.metadata.validated_boot).toMatchObject({
      platform: { os: "linux" },
      report: { passed: true, level: "full" },
    });
  });

  it("runs from its record in an empty data folder, with its driver from the store, its files and the card of the record", async () => {
    const { url } = open();
    const data = emptyData(name);
    const welcome = join(sessionUser.home, "notes/welcome.txt");
    rmSync(welcome, { force: true });
    await using command = agentenv(["run", shown.id.slice(7, 19), "--store", url, "--port", "0", "--json"], {
      AGENTENV_DATA: data,
      // Nothing can be downloaded.
      PIP_NO_INDEX: "1",
    });
    const ready = await command.ready();
    expect(command.stderr).toContain(`installing cua-driver`);
    expect(ready.dataDir).toBe(data);
    expect(readFileSync(welcome, "utf8")).toBe("This file came with the env.\n");
    const card = await cardOf(ready);
    for (const { params } of card.capabilities.extensions) delete params?.platform;
    expect(card).toEqual(shown.card);
    await expectSameDigest(ready, shown.skills[0]?.digest ?? "");
  });

  it("is the same record as in the other store", () => {
    expect(ids.size).toBe(1);
  });

  it("is refused by run when one byte of it is flipped, naming the file, and nothing is written", async () => {
    const { url, objects } = open();
    const { sha256 = "" } = shown.files.find(({ path }) => path === "seeds/welcome.txt") ?? {};
    const object = join(objects, "agentenv-env-files", sha256);
    const bytes = readFileSync(object);
    bytes[0] = (bytes[0] ?? 0) ^ 1;
    writeFileSync(object, bytes);
    const data = join(folder, `untouched-${name}`);
    const exit = await agentenv(["run", shown.id, "--store", url, "--port", "0"], { AGENTENV_DATA: data }).exited;
    expect(exit.code).toBe(1);
    expect(exit.stderr).toMatch(/seeds\/welcome\.txt \(agentenv-env-files\/[0-9a-f]{64}\) is tampered/);
    expect(existsSync(data)).toBe(false);
  });
});

/** The digest of a running computer's skill, as each way to it tells it, and as it is made again on another file system. */
async function expectSameDigest({ url }: Ready, digest: string): Promise<void> {
  const store = ["--store", pathToFileURL(mkdtempSync(join(folder, "skills-"))).href];
  await using mcp = await McpClient.connect(url);
  const entries = ((await mcp.request("skills/list", {})).skills as unknown[]).map((each) => SkillEntry.parse(each));
  const listed = entries.find(({ frontmatter }) => frontmatter.name === "computer")?.resources;
  if (!Array.isArray(listed)) throw new Error("the skill's files aren't listed");
  const files = listed.map((file) => ({
    path: decodeURIComponent(file.uri.replace("skill://computer/", "")),
    size: file.size,
    sha256: file.digest.replace("sha256:", ""),
  }));
  expect(digestOf(files.sort((a, b) => (a.path < b.path ? -1 : 1)))).toBe(digest);
  expect((await json<{ digest: string }>(["skills", "add", url, ...store])).digest).toBe(digest);
  const packed = async (source: string) => {
    const out = join(folder, "skill.tar");
    const { tar, digest: of } = await json<{ digest: string; tar: object }>(["skills", "pack", source, "--out", out]);
    return { tar, digest: of, bytes: hash("sha256", readFileSync(out), "hex") };
  };
  const direct = await packed(url);
  expect(direct.digest).toBe(digest);
  const memory = mkdtempSync("/dev/shm/skill-");
  try {
    for (const elsewhere of [memory, folder]) {
      const out = join(elsewhere, "computer");
      await json(["skills", "get", digest, "--out", out, ...store]);
      expect(await packed(out)).toEqual(direct);
      rmSync(out, { recursive: true });
    }
  } finally {
    rmSync(memory, { recursive: true });
  }
}

describe("a bundle whose computer doesn't pass the probe", () => {
  it("is told what failed, and nothing of it is stored", async () => {
    using env = envFolder('type = "computer"\ndriver = "reference"\n[tools]\nhide = ["computer_drag"]\n');
    const store = join(folder, "nothing");
    const exit = await agentenv(["put", env.folder, "--store", pathToFileURL(store).href]).exited;
    expect(exit.code).toBe(1);
    expect(exit.stdout).toMatch(/^FAIL P1 the seven tools are listed .*computer_drag/m);
    expect(exit.stderr).toMatch(/failed \d+ checks of the probe: nothing was stored/);
    expect(existsSync(store)).toBe(false);
  });
});
