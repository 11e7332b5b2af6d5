import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SetupError } from "../../../src/errors.js";
import { FolderStore } from "../../../src/stores/folder-store.js";
import { inParallel, objectsBelow } from "../../../src/stores/object-store.js";

let folder: string;
let store: FolderStore;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "store-")), "store");
  store = new FolderStore(folder);
});
afterEach(() => rmSync(join(folder, ".."), { recursive: true, force: true }));

const keysBelow = async (prefix: string) => {
  const keys: string[] = [];
  for await (const { key } of objectsBelow(store, prefix)) keys.push(key);
  return keys;
};

describe("a folder as a store", () => {
  it("answers what was put, its size and its time, and nothing for what wasn't", async () => {
    await store.put("a/b", Buffer.from("hello"));
    expect(await store.get("a/b", 100)).toEqual(Buffer.from("hello"));
    expect(await store.head("a/b")).toMatchObject({ key: "a/b", size: 5, modified: expect.any(Date) });
    expect(await store.get("a/c", 100)).toBeUndefined();
    expect(await store.head("a")).toBeUndefined();
    expect(await keysBelow("")).toEqual(["a/b"]);
  });

  it("reads no more than one byte over the limit", async () => {
    await store.put("large", Buffer.alloc(1_000));
    expect(await store.get("large", 10)).toHaveLength(11);
  });

  it("keeps the last of several puts of one key, and leaves no file behind", async () => {
    const puts = Array.from({ length: 40 }, (_, index) => store.put("same", Buffer.alloc(10_000, index)));
    await Promise.all(puts);
    expect(new Set(await store.get("same", 10_000)).size).toBe(1);
    expect(readdirSync(join(folder, ".unfinished"))).toEqual([]);
  });

  it("lists by prefix in the order of the keys, in pages that go on where the last one ended", async () => {
    const keys = Array.from(
      { length: 2_100 },
      (_, index) => `p/${String(index % 7)}/${String(index).padStart(4, "0")}`,
    );
    mkdirSync(folder);
    for (const key of [...keys, "p/1-x", "p.txt", "q/1"]) {
      mkdirSync(join(folder, key, ".."), { recursive: true });
      writeFileSync(join(folder, key), "");
    }
    expect(await keysBelow("p/")).toEqual([...keys, "p/1-x"].sort());
    expect(await keysBelow("p/1")).toEqual([...keys.filter((key) => key.startsWith("p/1")), "p/1-x"].sort());
    expect(await keysBelow("")).toHaveLength(2_103);
    const first = await store.list("p/");
    expect(first.objects).toHaveLength(1_000);
    const second = await store.list("p/", first.next);
    expect(second.objects[0]?.key).toBe([...keys, "p/1-x"].sort()[1_000]);
    expect(await keysBelow("none/")).toEqual([]);
  });

  it("deletes, folders that are empty then too, and doesn't mind what isn't there", async () => {
    await store.put("a/b/c", Buffer.from("1"));
    await store.put("a/d", Buffer.from("2"));
    await store.delete("a/b/c");
    await store.delete("a/b/c");
    expect(readdirSync(join(folder, "a"))).toEqual(["d"]);
    expect(await keysBelow("")).toEqual(["a/d"]);
  });

  it("puts while others delete beside it, in the same folder", async () => {
    for (let round = 0; round < 50; round += 1) {
      await store.put("x/one", Buffer.from("1"));
      await Promise.all([store.delete("x/one"), store.put("x/two", Buffer.from("2")), store.delete("x/none")]);
      expect(await store.get("x/two", 1)).toEqual(Buffer.from("2"));
      await store.delete("x/two");
    }
  });

  it("removes what a writer left that was killed a day ago, and leaves what is younger", async () => {
    const unfinished = join(folder, ".unfinished");
    mkdirSync(unfinished, { recursive: true });
    for (const name of ["old", "young"]) writeFileSync(join(unfinished, name), "half");
    const longAgo = Date.now() / 1000 - 25 * 3600;
    utimesSync(join(unfinished, "old"), longAgo, longAgo);
    await store.put("a", Buffer.from("1"));
    expect(readdirSync(unfinished)).toEqual(["young"]);
    expect(await keysBelow("")).toEqual(["a"]);
  });

  it("refuses keys that are paths in disguise", async () => {
    for (const key of ["../x", "/etc/x", "a//b", "a/../b", ".unfinished/x", "a\0b", "", "a/"]) {
      await expect(store.put(key, Buffer.from("x")), key).rejects.toThrow(TypeError);
      await expect(store.get(key, 1), key).rejects.toThrow(TypeError);
    }
  });

  it("that is a file is an error a person can act on", async () => {
    writeFileSync(folder, "a file");
    const refused = await store.put("a", Buffer.from("1")).catch((thrown: unknown) => thrown);
    expect(refused).toBeInstanceOf(SetupError);
    expect((refused as SetupError).hint).toContain("--store");
  });

  it("makes files that other users can read", async () => {
    await store.put("a/b", Buffer.from("1"));
    expect(statSync(join(folder, "a/b")).mode & 0o777).toBe(0o644);
  });
});

describe("work on many objects", () => {
  it("runs as many at once as the store wants, and each once", async () => {
    let running = 0;
    let most = 0;
    const seen: number[] = [];
    await inParallel(
      store,
      Array.from({ length: 100 }, (_, index) => index),
      async (item) => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        seen.push(item);
        running -= 1;
      },
    );
    expect(most).toBe(store.parallel);
    expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, index) => index));
  });

  it("ends with the first failure, when what was running has ended", async () => {
    let running = 0;
    let begun = 0;
    const failing = inParallel(
      store,
      Array.from({ length: 100 }, (_, index) => index),
      async (item) => {
        begun += 1;
        running += 1;
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        if (item === 3) throw new Error("the third");
      },
    );
    await expect(failing).rejects.toThrow("the third");
    expect(running).toBe(0);
    expect(begun).toBeLessThan(30);
  });
});
