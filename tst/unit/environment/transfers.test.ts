import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MockAgent } from "undici";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isPrivate } from "../../../src/environment/public-internet.js";
import { download, downloadGranted, GrantedUpload, ReadGrant, WriteGrant } from "../../../src/environment/transfers.js";
import { AgentEnvError } from "../../../src/errors.js";

const STORE = "https://store.example";
const LATER = "2999-01-01T00:00:00Z";
let agent: MockAgent;

beforeEach(() => {
  agent = new MockAgent();
  agent.disableNetConnect();
});

afterEach(async () => agent.close());

async function all(chunks: AsyncIterable<Buffer>): Promise<string> {
  const read: Buffer[] = [];
  for await (const chunk of chunks) read.push(chunk);
  return Buffer.concat(read).toString();
}

async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (thrown) {
    if (thrown instanceof AgentEnvError) return thrown.code;
    throw thrown;
  }
  throw new Error("it was not refused");
}

function readGrant(more: object = {}): ReadGrant {
  const read = { kind: "http-get", url: `${STORE}/object`, expires_at: LATER, headers: { authorization: "granted" } };
  return ReadGrant.parse({ media_type: "text/plain", max_bytes: 100, read, ...more });
}

function writeGrant(more: object = {}): WriteGrant {
  return WriteGrant.parse({
    root_path: "runs/7",
    expires_at: LATER,
    max_objects: 2,
    max_object_bytes: 10,
    max_total_bytes: 15,
    write: {
      kind: "http-post-policy",
      url: `${STORE}/upload`,
      fields: { policy: "p" },
      path_field: "key",
      file_field: "file",
    },
    ...more,
  });
}

describe("a download", () => {
  it("gives the bytes, and follows redirects to https", async () => {
    const store = agent.get(STORE);
    store.intercept({ path: "/from" }).reply(302, "", { headers: { location: `${STORE}/to` } });
    store.intercept({ path: "/to" }).reply(200, "hello");
    expect(await all(download(`${STORE}/from`, agent))).toBe("hello");
  });

  it("tries a busy server again, and gives up on one that refuses", async () => {
    const store = agent.get(STORE);
    store.intercept({ path: "/busy" }).reply(503, "");
    store.intercept({ path: "/busy" }).reply(200, "at last");
    store.intercept({ path: "/no" }).reply(404, "");
    expect(await all(download(`${STORE}/busy`, agent))).toBe("at last");
    expect(await refusal(all(download(`${STORE}/no`, agent)))).toBe("internal");
  });

  it("that is granted sends the grant's headers, and is checked against size, limit and digest", async () => {
    const reply = () =>
      agent
        .get(STORE)
        .intercept({ path: "/object", headers: { authorization: "granted", "accept-encoding": "identity" } })
        .reply(200, "hello");
    const sha256 = createHash("sha256").update("hello").digest("hex");
    reply();
    expect(await all(downloadGranted(readGrant({ size_bytes: 5, sha256 }), agent))).toBe("hello");
    for (const [wrong, code] of [
      [{ size_bytes: 6 }, "invalid_argument"],
      [{ sha256: "0".repeat(64) }, "invalid_argument"],
      [{ max_bytes: 4 }, "limit_exceeded"],
    ] as const) {
      reply();
      expect(await refusal(all(downloadGranted(readGrant(wrong), agent)))).toBe(code);
    }
  });

  it("isn't begun with a grant that has expired", async () => {
    const read = { kind: "http-get", url: `${STORE}/object`, expires_at: "2001-01-01T00:00:00Z" };
    expect(await refusal(all(downloadGranted(readGrant({ read }), agent)))).toBe("invalid_argument");
  });
});

describe("a granted upload", () => {
  it("posts each file with the policy's fields, its path below the grant's root, within the limits", async () => {
    const folder = mkdtempSync(join(tmpdir(), "agentenv-upload-"));
    const file = (name: string, content: string) => {
      writeFileSync(join(folder, name), content);
      return join(folder, name);
    };
    const bodies: FormData[] = [];
    agent
      .get(STORE)
      .intercept({ path: "/upload", method: "POST" })
      .reply(204, ({ body }) => {
        bodies.push(body as unknown as FormData);
        return "";
      })
      .times(2);
    const upload = new GrantedUpload(writeGrant(), agent);
    await upload.upload("out/a.txt", file("a.txt", "hello"));
    expect(await refusal(upload.upload("large", file("large", "x".repeat(11))))).toBe("limit_exceeded");
    await upload.upload("b", file("b", "0123456789"));
    expect(await refusal(upload.upload("c", file("c", "")))).toBe("limit_exceeded");
    const first = bodies[0] as FormData;
    expect([bodies.length, first.get("key"), first.get("policy")]).toEqual([2, "runs/7/out/a.txt", "p"]);
    expect(await (first.get("file") as File).text()).toBe("hello");
    expect([...first.keys()].at(-1)).toBe("file");
    rmSync(folder, { recursive: true });
  });
});

describe("addresses", () => {
  it.each([
    "127.0.0.1",
    "10.1.2.3",
    "172.31.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fd00::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
  ])("%s is private", (address) => {
    expect(isPrivate(address)).toBe(true);
  });

  it.each(["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8"])("%s is public", (address) => {
    expect(isPrivate(address)).toBe(false);
  });
});
