import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { MockAgent } from "undici";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type PartBytesOptions, partBytes } from "../../../src/environment/part-bytes.js";
import type { FilePart } from "../../../src/protocol/data-plane.js";

let folder: string;
let agent: MockAgent;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "parts-"));
  mkdirSync(join(folder, "staged"));
  writeFileSync(join(folder, "staged", "a.txt"), "staged");
  writeFileSync(join(folder, "secret"), "secret");
  agent = new MockAgent();
  agent.disableNetConnect();
});
afterEach(async () => {
  rmSync(folder, { recursive: true, force: true });
  await agent.close();
});

async function read(
  file: FilePart["file"],
  options: PartBytesOptions = {},
  metadata?: FilePart["metadata"],
): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of partBytes({ kind: "file", file, metadata }, options)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

const uriOf = (...path: string[]) => ({ uri: pathToFileURL(join(folder, ...path)).href });

describe("the bytes of a file part", () => {
  it("come from the part itself, in base64", async () => {
    expect(await read({ bytes: Buffer.from("inside").toString("base64") })).toBe("inside");
    await expect(read({ bytes: "no base64!" })).rejects.toMatchObject({ code: "invalid_argument" });
  });

  it("come from a staged file, and from none outside of the folders for them, whichever way leads there", async () => {
    const staged = { stagedFolders: [join(folder, "staged")] };
    expect(await read(uriOf("staged", "a.txt"), staged)).toBe("staged");
    writeFileSync(join(folder, "staged", "empty"), "");
    expect(await read(uriOf("staged", "empty"), staged)).toBe("");
    symlinkSync(join(folder, "secret"), join(folder, "staged", "link"));
    symlinkSync(join(folder, "staged"), join(folder, "also"));
    expect(await read(uriOf("also", "a.txt"), staged)).toBe("staged");
    const outside = { uri: `${pathToFileURL(join(folder, "staged")).href}/../secret` };
    for (const refused of [
      uriOf("secret"),
      uriOf("staged", "link"),
      uriOf("staged"),
      uriOf("staged", "none"),
      outside,
    ]) {
      await expect(read(refused, staged)).rejects.toMatchObject({ code: "invalid_argument", applied: "no" });
    }
    await expect(read({ uri: "file://elsewhere/x" }, staged)).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(read(uriOf("staged", "a.txt"))).rejects.toMatchObject({
      hint: "this environment takes no file: URIs",
    });
    await expect(read(uriOf("staged", "a.txt"), { ...staged, maxBytes: 3 })).rejects.toMatchObject({
      code: "limit_exceeded",
    });
  });

  it("come over https up to the limit, from no private address unless that is allowed, and over nothing else", async () => {
    const store = agent.get("https://store.example");
    store.intercept({ path: "/a" }).reply(200, "far").times(2);
    const options = { dispatcher: agent };
    expect(await read({ uri: "https://store.example/a" }, options)).toBe("far");
    await expect(read({ uri: "https://store.example/a" }, { ...options, maxBytes: 2 })).rejects.toMatchObject({
      code: "limit_exceeded",
    });
    await expect(read({ uri: "https://127.0.0.1:9/a" })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("private address"),
    });
    // Let through, it finds that nobody listens there.
    await expect(read({ uri: "https://127.0.0.1:9/a" }, { allowPrivate: true })).rejects.toMatchObject({
      code: "internal",
    });
    for (const uri of ["http://store.example/a", "ftp://store.example/a", "data:,x", "nowhere"]) {
      await expect(read({ uri }, { allowPrivate: true })).rejects.toMatchObject({ code: "invalid_argument" });
    }
  });

  it("come from behind the read grant that the part's metadata holds, within its limits", async () => {
    const store = agent.get("https://store.example");
    store
      .intercept({ path: "/granted", headers: { authorization: "let in" } })
      .reply(200, "granted")
      .persist();
    const grant = (more: object) => ({
      "urn:agentenv:data-objects/v1": {
        path: "a.txt",
        read: {
          media_type: "text/plain",
          max_bytes: 100,
          read: {
            kind: "http-get",
            url: "https://store.example/granted",
            expires_at: "2999-01-01T00:00:00Z",
            headers: { authorization: "let in" },
          },
          ...more,
        },
      },
    });
    const file = { uri: "a.txt" };
    const options = { dispatcher: agent };
    expect(await read(file, options, grant({ size_bytes: 7 }))).toBe("granted");
    await expect(read(file, options, grant({ max_bytes: 3 }))).rejects.toMatchObject({ code: "limit_exceeded" });
    const wrong = read(file, options, grant({ sha256: 7, secret: "s3cret" }));
    await expect(wrong).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.not.stringContaining("s3cret"),
    });
  });
});
