import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { idOf } from "../../../src/bundles/env-record.js";
import { EnvStore, RecordDamaged } from "../../../src/bundles/env-store.js";
import { AgentEnvError, SetupError } from "../../../src/errors.js";
import type { ObjectStore } from "../../../src/stores/object-store.js";
import { openStore } from "../../../src/stores/open-store.js";
import { PATIENT, type RetryPolicy } from "../../../src/stores/retry.js";
import { FailingS3, type Trouble } from "../../fakes/failing-s3.js";
import { provenEnv } from "../../harness/proven-env.js";
import { S3Server } from "../../harness/rclone.js";

const QUICK: RetryPolicy = { deadline: 10_000, attempt: 3_000, attempts: 4, firstWait: 20, longestWait: 100 };
const env = provenEnv();
const id = idOf(env.record);
const program = env.program ?? { size: 0, sha256: "", bytes: Buffer.alloc(0) };

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
});

async function open(policy = QUICK): Promise<EnvStore> {
  const store = await openStore(server.url(`t${prefix}`, proxy.endpoint), policy);
  stores.push(store);
  return new EnvStore(store);
}

async function expectWhole(envs: EnvStore): Promise<void> {
  expect(await envs.get(id)).toMatchObject({ id, record: env.record, boot: env.boot });
  expect((await envs.program(id, program))?.equals(program.bytes)).toBe(true);
}

describe("an env in an S3 store that", () => {
  it("takes 2 s for each answer is put and read, many requests at once", async () => {
    const envs = await open(PATIENT);
    proxy.trouble = () => ({ delay: 2_000 });
    const started = performance.now();
    await envs.put(env);
    await expectWhole(envs);
    // Its files, its skill, the program, the boot, the record: what is slow is asked for some twenty times in a row.
    expect(performance.now() - started).toBeLessThan(2_000 * 25);
  });

  it("answers 500 or 503 for a while is put when that is over", async () => {
    const envs = await open(PATIENT);
    const until = performance.now() + 2_000;
    let refused = 0;
    proxy.trouble = (): Trouble => {
      if (performance.now() > until) return undefined;
      refused += 1;
      return refused % 2 === 0 ? { status: 500, code: "InternalError" } : { status: 503, code: "SlowDown" };
    };
    await envs.put(env);
    expect(refused).toBeGreaterThan(1);
    await expectWhole(envs);
  });

  it.each<Trouble>(["cut-before", "cut-after", "cut-body", "flip-request", "flip-body"])(
    "does %s to every first request is put and read right",
    async (trouble) => {
      const envs = await open();
      const seen = new Set<string>();
      proxy.trouble = ({ method, url }) => {
        const [path = ""] = url.split("?");
        // No checksum is over a list.
        if (seen.has(`${method} ${path}`) || (trouble === "flip-body" && !/[0-9a-f]{64}/.test(path))) return;
        seen.add(`${method} ${path}`);
        return trouble;
      };
      await envs.put(env);
      seen.clear();
      await expectWhole(envs);
    },
  );

  it("is gone after any number of requests leaves no record, and the next put completes it", async () => {
    for (let lasts = 1; ; lasts += 1) {
      prefix += 1;
      const short = await open({ ...QUICK, attempts: 1 });
      const first = proxy.asked.length;
      proxy.trouble = ({ count }) => (count > first + lasts ? "cut-before" : undefined);
      const ended = await short.put(env).catch((thrown: unknown) => thrown);
      proxy.trouble = () => undefined;
      const envs = await open();
      if (!(ended instanceof Error)) {
        // Looks and puts of two files, a skill's two and its manifest, a program's two pieces, the boot, the record.
        expect(lasts).toBeGreaterThan(15);
        break;
      }
      expect(ended).toBeInstanceOf(AgentEnvError);
      expect(await envs.list(), String(lasts)).toEqual([]);
      await envs.put(env);
      await expectWhole(envs);
    }
  });

  it("is full says so, and holds no record", async () => {
    const envs = await open();
    proxy.trouble = ({ method, url }) =>
      method === "PUT" && url.includes("boots/") ? { status: 507, code: "InsufficientStorage" } : undefined;
    const refused = await envs.put(env).catch((thrown: unknown) => thrown);
    expect(refused).toBeInstanceOf(SetupError);
    expect(refused).toMatchObject({ message: expect.stringMatching(/is full$/) });
    proxy.trouble = () => undefined;
    expect(await envs.list()).toEqual([]);
  });

  it.each([
    ["an env's file", "agentenv-env-files/", /is tampered/],
    ["the driver's program", "agentenv-env-programs/", /agentenv-env-programs\/[0-9a-f]{64}\/0000 is tampered/],
  ])("gives changed bytes each time of %s is told as damaged, and what is", async (_what, key, told) => {
    const envs = await open();
    await envs.put(env);
    proxy.trouble = ({ method, url }) => (method === "GET" && url.includes(key) ? "flip-body" : undefined);
    const refused = await expectWhole(envs).catch((thrown: unknown) => thrown);
    expect(refused).toBeInstanceOf(RecordDamaged);
    expect((refused as RecordDamaged).message).toMatch(told);
  });

  it("ten put the same into at once holds it once and whole", async () => {
    const all = await Promise.all(Array.from({ length: 10 }, open.bind(undefined, QUICK)));
    await Promise.all(all.map((envs) => envs.put(env)));
    const envs = await open();
    expect((await envs.list()).map((each) => each.id)).toEqual([id]);
    await expectWhole(envs);
  });
});
