import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DataPlane } from "../../../src/computer/data-plane.js";
import { decodeBase64 } from "../../../src/environment/base64.js";
import { AgentEnvError } from "../../../src/errors.js";
import { DATA_OBJECTS_URN, type Part } from "../../../src/protocol/data-plane.js";
import { type FakeSession, fakeSession } from "../../fakes/computer-session.js";

let session: FakeSession;
let outside: string;
let dataPaths: string[];
let data: DataPlane;
const home = (...path: string[]) => join(session.user.home, ...path);

beforeEach(() => {
  session = fakeSession();
  outside = realpathSync(mkdtempSync(join(tmpdir(), "agentenv-outside-")));
  dataPaths = [];
  data = new DataPlane(session.user, () => dataPaths);
});

afterEach(() => {
  session[Symbol.dispose]();
  rmSync(outside, { recursive: true });
});

function part(path: unknown, content: string | Buffer = "content", more: object = {}): Part {
  const file = { bytes: Buffer.from(content).toString("base64") };
  return { kind: "file", file, metadata: { [DATA_OBJECTS_URN]: { path, ...more } } } as Part;
}

async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (thrown) {
    if (thrown instanceof AgentEnvError) return `${thrown.code}: ${thrown.message}`;
    throw thrown;
  }
  throw new Error("it was not refused");
}

/** Everything below a folder, links as they are. */
function tree(folder: string): string[] {
  return (readdirSync(folder, { recursive: true }) as string[]).sort();
}

describe("data/add", () => {
  it("writes files at their paths in the home, making folders, and replaces what is there", async () => {
    await data.add([part("a.txt", "one"), part("deep/er/b.bin", Buffer.from([0, 255, 1]))]);
    await data.add([part("a.txt", "two")]);
    expect([readFileSync(home("a.txt"), "utf8"), [...readFileSync(home("deep/er/b.bin"))]]).toEqual([
      "two",
      [0, 255, 1],
    ]);
    expect(tree(home())).toEqual(["a.txt", "deep", "deep/er", "deep/er/b.bin"]);
  });

  it("takes base64 as a Buffer too, and files larger than a piece", async () => {
    const large = Buffer.alloc(9 << 20, "abcdefg");
    await data.add([
      {
        kind: "file",
        file: { bytes: Buffer.from(large.toString("base64")) },
        metadata: { [DATA_OBJECTS_URN]: { path: "large" } },
      },
    ]);
    expect(readFileSync(home("large")).equals(large)).toBe(true);
  });

  it.each([["/etc/x"], ["../x"], ["a/../../x"], ["a//b"], ["./a"], [""], ["a\\b"], ["a\0b"], [7], [undefined]])(
    "refuses the path %j",
    async (path) => {
      expect(await refusal(data.add([part("fine"), part(path)]))).toContain("invalid_argument: the path");
      expect(tree(home())).toEqual([]);
    },
  );

  it("refuses parts that are no files, or name no path", async () => {
    const parts: Part[] = [
      { kind: "text", text: "a" },
      { kind: "data", data: {} },
      { kind: "file", file: { bytes: "" } },
      { kind: "file", file: { bytes: "" }, metadata: { [DATA_OBJECTS_URN]: "a" } },
    ];
    for (const each of parts)
      expect(await refusal(data.add([each]))).toContain("invalid_argument: a computer takes file parts");
  });

  it.each(["a", "aaaaa", "aa==aaaa", "a-_a", "aa a", "aaa\n", "===="])(
    "refuses %j, which is no base64, and leaves nothing behind",
    async (bytes) => {
      const wrong: Part = { kind: "file", file: { bytes }, metadata: { [DATA_OBJECTS_URN]: { path: "x/wrong" } } };
      expect(await refusal(data.add([part("fine"), wrong]))).toBe("invalid_argument: the file's bytes are not base64");
      expect(tree(home()).filter((name) => name !== "x")).toEqual([]);
      expect(() => [...decodeBase64(Buffer.from(bytes))]).toThrow(AgentEnvError);
    },
  );

  it("never writes through a link out of the home, to a folder or to a file", async () => {
    writeFileSync(join(outside, "victim"), "untouched");
    symlinkSync(outside, home("out"));
    mkdirSync(home("dir"));
    symlinkSync(join("..", "out"), home("dir", "again"));
    symlinkSync(join(outside, "victim"), home("link"));
    symlinkSync(join(outside, "nothing"), home("dangling"));
    for (const path of ["out/x", "dir/again/x", "out/new/x"]) {
      expect(await refusal(data.add([part(path)]))).toContain("leads out of the home");
    }
    expect(await refusal(data.add([part("dangling/x")]))).toContain("a link in the path leads nowhere");
    await data.add([part("link", "mine"), part("dangling", "mine")]);
    expect([readFileSync(join(outside, "victim"), "utf8"), readFileSync(home("link"), "utf8")]).toEqual([
      "untouched",
      "mine",
    ]);
    expect(tree(outside)).toEqual(["victim"]);
  });

  it("follows a link that stays in the home", async () => {
    mkdirSync(home("real"));
    symlinkSync("real", home("alias"));
    await data.add([part("alias/x", "1")]);
    expect(readFileSync(home("real/x"), "utf8")).toBe("1");
  });

  it("refuses a path where no file can be, and leaves no half of one", async () => {
    mkdirSync(home("folder"));
    writeFileSync(home("file"), "");
    expect(await refusal(data.add([part("folder")]))).toContain("there is a folder of that name");
    expect(await refusal(data.add([part("file/x")]))).toContain("a part of the path is no folder");
    expect(tree(home())).toEqual(["file", "folder"]);
  });

  it("refuses a uri that is not https, or leads to a private address, and a grant that is none, quoting none of it", async () => {
    const at = (uri: string, more = {}): Part => ({
      kind: "file",
      file: { uri },
      metadata: { [DATA_OBJECTS_URN]: { path: "x", ...more } },
    });
    for (const uri of ["http://example.org/secret", "file:///etc/passwd", "nonsense"]) {
      expect(await refusal(data.add([at(uri)]))).toBe("invalid_argument: a file's uri is an https URL");
    }
    for (const host of ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1"]) {
      const message = await refusal(data.add([at(`https://${host}:9/secret`)]));
      expect(message).toBe("invalid_argument: the file's uri leads to a private address");
    }
    const message = await refusal(data.add([at("https://x", { read: { read: { url: "secret" } } })]));
    expect(message).toMatch(/^invalid_argument: the read grant is none: .*read\.url/);
    expect(message).not.toContain("secret");
    expect(existsSync(home("x"))).toBe(false);
  });
});

describe("data/get", () => {
  it("answers the files at and below the data paths, each once, sorted, and skips what isn't there", async () => {
    dataPaths = ["out", "notes.txt", "out/b", "missing"];
    await data.add([part("out/b/c.txt", "c"), part("out/a.txt", "a"), part("notes.txt", "n"), part("other", "o")]);
    expect(await data.get({})).toEqual(
      [
        ["out/a.txt", "a"],
        ["out/b/c.txt", "c"],
        ["notes.txt", "n"],
      ].map(([path, content]) => ({
        kind: "file",
        file: { bytes: Buffer.from(content as string).toString("base64"), name: path?.split("/").at(-1) },
        metadata: { [DATA_OBJECTS_URN]: { path } },
      })),
    );
    dataPaths = [];
    expect(await data.get({})).toEqual([]);
  });

  it("answers nothing from outside the home, follows no link to a folder below a path, and waits for no pipe", async () => {
    writeFileSync(join(outside, "secret"), "secret");
    mkdirSync(home("out"));
    writeFileSync(home("own"), "own");
    symlinkSync(join(outside, "secret"), home("out", "leak"));
    symlinkSync(outside, home("out", "leaks"));
    symlinkSync("..", home("out", "circle"));
    symlinkSync(join("..", "own"), home("out", "inside"));
    symlinkSync(outside, home("elsewhere"));
    const { exitCode } = await new Promise<{ exitCode: number | null }>((resolve) => {
      const child = session.user.spawn("mkfifo", [home("out", "pipe")]);
      child.once("exit", (code) => resolve({ exitCode: code }));
    });
    expect(exitCode).toBe(0);
    dataPaths = ["out", "elsewhere"];
    const parts = await data.get({});
    expect(parts.map((each) => each.metadata?.[DATA_OBJECTS_URN])).toEqual([{ path: "out/inside" }]);
  });

  it("refuses a write_namespace that is no grant, naming its fields and none of their values", async () => {
    const message = await refusal(data.get({ write_namespace: { root_path: "/", write: { url: "https://secret" } } }));
    expect(message).toMatch(/^invalid_argument: write_namespace is no grant: .*root_path/);
    expect(message).not.toContain("secret");
  });
});
