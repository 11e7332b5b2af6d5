import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { SetupError } from "../../../src/errors.js";
import { openStore } from "../../../src/stores/open-store.js";
import { S3Server } from "../../harness/rclone.js";

const OF_AWS = [
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "AWS_PROFILE",
  "AWS_REGION",
  "AWS_DEFAULT_REGION",
  "AWS_ENDPOINT_URL",
  "AWS_ENDPOINT_URL_S3",
];

let server: S3Server;
let folder: string;
beforeAll(async () => {
  server = await S3Server.start();
  folder = mkdtempSync(join(tmpdir(), "aws-"));
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});
/** A machine on which nobody has set anything up. */
beforeEach(() => {
  for (const name of OF_AWS) vi.stubEnv(name, undefined);
  vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
  vi.stubEnv("AWS_CONFIG_FILE", join(folder, "none"));
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", join(folder, "none"));
});
afterEach(() => void vi.unstubAllEnvs());

function file(name: string, lines: readonly string[]): string {
  const path = join(folder, name);
  writeFileSync(path, `${lines.join("\n")}\n`, { mode: 0o600 });
  return path;
}

async function works(url: string): Promise<void> {
  await using store = await openStore(url);
  await store.put("a/b", Buffer.from("hello"));
  expect(await store.get("a/b", 5)).toEqual(Buffer.from("hello"));
}

const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = S3Server.credentials;
const keys = [`aws_access_key_id = ${AWS_ACCESS_KEY_ID}`, `aws_secret_access_key = ${AWS_SECRET_ACCESS_KEY}`];

describe("an S3 store takes from where AWS's own tools do", () => {
  it("credentials and the endpoint from the environment", async () => {
    for (const [name, value] of Object.entries(S3Server.credentials)) vi.stubEnv(name, value);
    for (const name of ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]) {
      vi.stubEnv(name, server.endpoint);
      await works("s3://bucket/from-the-environment");
      vi.stubEnv(name, undefined);
    }
  });

  it("credentials from the profile that AWS_PROFILE names", async () => {
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", file("credentials", ["[work]", ...keys]));
    vi.stubEnv("AWS_PROFILE", "work");
    await works(server.url("of-a-profile"));
  });

  it("region and endpoint from a profile of the configuration file", async () => {
    const settings = ["region = eu-west-1", `endpoint_url = ${server.endpoint}`];
    vi.stubEnv("AWS_CONFIG_FILE", file("config", ["[profile work]", ...settings, ...keys]));
    vi.stubEnv("AWS_PROFILE", "work");
    await works("s3://bucket/of-a-configuration?path-style=true");
  });
});

it("an S3 store of AWS's own whose region nobody named says so before it is asked, and what to write", async () => {
  for (const [name, value] of Object.entries(S3Server.credentials)) vi.stubEnv(name, value);
  const refused = await openStore("s3://bucket/x").catch((thrown: unknown) => thrown);
  expect(refused).toBeInstanceOf(SetupError);
  expect(refused).toMatchObject({
    message: expect.stringContaining("s3://bucket/x"),
    hint: expect.stringMatching(/\?region=.*AWS_REGION/),
  });
});

it("a bucket with over 1,000 objects is listed page by page, each object once, in the order of the keys", async () => {
  for (const [name, value] of Object.entries(S3Server.credentials)) vi.stubEnv(name, value);
  const keys = Array.from({ length: 2_100 }, (_, index) => `p/${index % 7}/${String(index).padStart(4, "0")}`).sort();
  for (const key of [...keys, "q/1"]) {
    mkdirSync(join(folder, "bucket/many", key, ".."), { recursive: true });
    writeFileSync(join(folder, "bucket/many", key), "x");
  }
  // One of its own, which has read no folder before these files were in it.
  await using other = await S3Server.start(folder);
  await using store = await openStore(other.url("many"));
  const pages: string[][] = [];
  let next: string | undefined;
  do {
    const page = await store.list("p/", next);
    pages.push(page.objects.map(({ key }) => key));
    next = page.next;
  } while (next !== undefined);
  expect(pages.map(({ length }) => length)).toEqual([1_000, 1_000, 100]);
  expect(pages.flat()).toEqual(keys);
});
