import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { AgentEnvError, SetupError } from "../../../src/errors.js";
import { SkillStore } from "../../../src/skills/skill-store.js";
import type { ObjectStore } from "../../../src/stores/object-store.js";
import { openStore } from "../../../src/stores/open-store.js";
import { PATIENT, type RetryPolicy } from "../../../src/stores/retry.js";
import { FailingS3, type Trouble } from "../../fakes/failing-s3.js";
import { S3Server } from "../../harness/rclone.js";
import { largeSkill, skillOf, skillText } from "../../harness/skill-folder.js";

const QUICK: RetryPolicy = { deadline: 10_000, attempt: 3_000, attempts: 4, firstWait: 20, longestWait: 100 };
const SKILL = skillOf({ "SKILL.md": skillText("trouble"), "a.txt": "a".repeat(5_000), "b.txt": "b" });

let server: S3Server;
beforeAll(async () => {
  Object.assign(process.env, S3Server.credentials);
  server = await S3Server.start();
});
afterAll(() => server?.[Symbol.asyncDispose]());

let proxy: FailingS3;
let stores: ObjectStore[];
let prefix = 0;
beforeEach(async () => {
  proxy = await FailingS3.before(server.endpoint);
  stores = [];
  prefix += 1;
});
afterEach(async () => {
  for (const store of stores) await store[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
  vi.unstubAllEnvs();
});

async function open({ policy = QUICK, endpoint = proxy.endpoint, settings = "" } = {}): Promise<ObjectStore> {
  const store = await openStore(server.url(`t${prefix}`, endpoint, settings), policy);
  stores.push(store);
  return store;
}

describe("an S3 store that", () => {
  it("takes 2 s for each answer is waited for, many requests at once", async () => {
    const skills = new SkillStore(await open({ policy: PATIENT }));
    const large = largeSkill("slow", 30, 100);
    proxy.trouble = () => ({ delay: 2_000 });
    const started = performance.now();
    await skills.add(large);
    expect((await skills.get(large.digest)).digest).toBe(large.digest);
    // A list, the puts, a list, a manifest; then a manifest, the gets, a list.
    expect(performance.now() - started).toBeLessThan(2_000 * 9);
  });

  it("answers 500 or 503 for a while is asked again until it works", async () => {
    const skills = new SkillStore(await open({ policy: PATIENT }));
    const until = performance.now() + 3_000;
    let refused = 0;
    proxy.trouble = (): Trouble => {
      if (performance.now() > until) return undefined;
      refused += 1;
      return refused % 2 === 0 ? { status: 500, code: "InternalError" } : { status: 503, code: "SlowDown" };
    };
    await skills.add(SKILL);
    expect(refused).toBeGreaterThan(2);
    expect(await skills.verify(SKILL.digest)).toEqual([]);
  });

  it("answers 500 for good is given up on, saying how often it was asked", async () => {
    const store = await open();
    proxy.trouble = () => ({ status: 500, code: "InternalError" });
    const refused = await store.get("a/b", 1).catch((thrown: unknown) => thrown);
    expect(refused).toBeInstanceOf(AgentEnvError);
    expect(refused).toMatchObject({
      code: "device_unavailable",
      applied: "no",
      message: expect.stringContaining("500 InternalError"),
      hint: expect.stringContaining("4 times"),
    });
    expect(proxy.asked).toHaveLength(4);
    // A put may have arrived.
    await expect(store.put("a/b", Buffer.from("x"))).rejects.toMatchObject({ applied: "unknown", retryable: false });
  });

  it.each<Trouble>(["cut-before", "cut-after", "cut-body", "flip-request", "flip-body"])(
    "does %s to every first request is asked again, and the bundle is right",
    async (trouble) => {
      const skills = new SkillStore(await open());
      const seen = new Set<string>();
      proxy.trouble = ({ method, url }) => {
        const request = `${method} ${url.split("?")[0]}`;
        // Answers to a put have no body that matters, and a list is not covered by a checksum.
        if (seen.has(request) || (trouble === "flip-body" && !/\/[0-9a-f]{64}$/.test(url.split("?")[0] ?? ""))) return;
        seen.add(request);
        return trouble;
      };
      await skills.add(SKILL);
      proxy.asked.length = 0;
      seen.clear();
      expect((await skills.get(SKILL.digest)).digest).toBe(SKILL.digest);
      if (trouble !== "flip-request") expect(seen.size).toBeGreaterThan(1);
      proxy.trouble = () => undefined;
      expect(await skills.verify(SKILL.digest)).toEqual([]);
    },
  );

  it("gives changed bytes each time is told from one that is cut: the file is named as tampered", async () => {
    const skills = new SkillStore(await open());
    await skills.add(SKILL);
    const a = SKILL.files.find(({ path }) => path === "a.txt")?.sha256 ?? "";
    proxy.trouble = ({ method, url }) => (method === "GET" && url.includes(a) ? "flip-body" : undefined);
    expect(await skills.verify(SKILL.digest)).toEqual([{ path: "a.txt", fault: "tampered" }]);
  });

  it("never answers is left after the deadline of each try", async () => {
    const store = await open({ policy: { ...QUICK, attempt: 200, attempts: 2 } });
    proxy.trouble = () => "hang";
    const started = performance.now();
    await expect(store.get("a/b", 1)).rejects.toThrow(AgentEnvError);
    expect(performance.now() - started).toBeLessThan(3_000);
    expect(proxy.asked).toHaveLength(2);
  });

  it("sends the beginning of a body and then nothing more is left after the deadline too", async () => {
    const store = await open({ policy: { ...QUICK, attempt: 300, attempts: 2 } });
    await store.put("large", Buffer.alloc(3_000_000));
    proxy.trouble = ({ method }) => (method === "GET" ? "stall-body" : undefined);
    await expect(store.get("large", 3_000_000)).rejects.toThrow(/body was lost/);
  });

  it("goes away in the middle of an add leaves no bundle, and the next add completes it", async () => {
    const skills = new SkillStore(await open());
    proxy.trouble = ({ count }) => (count > 3 ? "cut-before" : undefined);
    await expect(skills.add(SKILL)).rejects.toThrow(AgentEnvError);
    proxy.trouble = () => undefined;
    await expect(skills.get(SKILL.digest)).rejects.toThrow(/has no skill/);
    await skills.add(SKILL);
    expect(await skills.verify(SKILL.digest)).toEqual([]);
  });

  it("is full says so at once, and holds no bundle", async () => {
    const skills = new SkillStore(await open());
    proxy.trouble = ({ method, count }) =>
      method === "PUT" && count > 3 ? { status: 507, code: "InsufficientStorage" } : undefined;
    const refused = await skills.add(SKILL).catch((thrown: unknown) => thrown);
    expect(refused).toBeInstanceOf(SetupError);
    expect(refused).toMatchObject({ message: expect.stringMatching(/is full$/), hint: "make room there" });
    expect(proxy.asked.length).toBeLessThan(8);
    proxy.trouble = () => undefined;
    await expect(skills.get(SKILL.digest)).rejects.toThrow(/has no skill/);
  });

  it("isn't there is told by its address", async () => {
    const store = await open({ endpoint: "http://127.0.0.1:1" });
    await expect(store.get("a", 1)).rejects.toThrow(/ECONNREFUSED/);
  });

  it("knows the content already is asked twice, whatever the skill's size", async () => {
    const skills = new SkillStore(await open());
    const large = largeSkill("known", 511, 100);
    await skills.add(large);
    expect(await proxy.counting(() => skills.add(large))).toBeLessThanOrEqual(2);
  });
});

describe("checksums", () => {
  const checksumHeaders = (headers: object) =>
    Object.keys(headers).filter((name) => /^x-amz-(sdk-)?checksum|^x-amz-trailer/.test(name));

  it("go with every put: a CRC as AWS's library does, which the store compares", async () => {
    const store = await open();
    await store.put("a", Buffer.from("hello"));
    const [put] = proxy.asked;
    expect(checksumHeaders(put?.headers ?? {})).toContain("x-amz-checksum-crc32");
    await store.get("a", 5);
    expect(proxy.asked.at(-1)?.headers["x-amz-checksum-mode"]).toBe("ENABLED");
  });

  it("are a Content-MD5 for a store that refuses those headers, which a hint names", async () => {
    proxy.trouble = ({ headers }) =>
      checksumHeaders(headers).length > 0 ? { status: 400, code: "InvalidArgument" } : undefined;
    const refused = await (await open()).put("a", Buffer.from("hello")).catch((thrown: unknown) => thrown);
    expect(refused).toMatchObject({ hint: expect.stringContaining("checksums=md5") });
    const store = await open({ settings: "&checksums=md5" });
    await store.put("a", Buffer.from("hello"));
    expect(proxy.asked.at(-1)?.headers["content-md5"]).toBe("XUFAKrxLKna5cZ2REBfFkg==");
    expect(await store.get("a", 5)).toEqual(Buffer.from("hello"));
    expect(checksumHeaders(proxy.asked.at(-1)?.headers ?? {})).toEqual([]);
  });
});

describe("a mistake in setting up", () => {
  it("the bucket is told as that, at once", async () => {
    const url = server.url("x", proxy.endpoint).replace("s3://bucket/", "s3://other-bucket/");
    const store = await openStore(url, QUICK);
    stores.push(store);
    await expect(store.get("a", 1)).rejects.toThrow(/has no bucket other-bucket/);
    expect(proxy.asked).toHaveLength(1);
  });

  it("the credentials is told as that, at once, without the secret", async () => {
    vi.stubEnv("AWS_ACCESS_KEY_ID", "somebody-else");
    const store = await open();
    const refused = await store.put("a", Buffer.from("x")).catch((thrown: unknown) => thrown);
    expect(refused).toBeInstanceOf(SetupError);
    expect(refused).toMatchObject({ hint: expect.stringContaining("credentials") });
    expect(JSON.stringify(refused)).not.toContain(S3Server.credentials.AWS_SECRET_ACCESS_KEY);
    expect(proxy.asked).toHaveLength(1);
  });

  it("leaves credentials out is told how to set them", async () => {
    for (const name of Object.keys(S3Server.credentials)) vi.stubEnv(name, "");
    vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
    vi.stubEnv("AWS_CONFIG_FILE", "/dev/null");
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    await expect((await open()).get("a", 1)).rejects.toMatchObject({
      hint: expect.stringContaining("AWS_ACCESS_KEY_ID"),
    });
    expect(proxy.asked).toEqual([]);
  });
});
