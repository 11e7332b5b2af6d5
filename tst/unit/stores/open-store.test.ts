import { describe, expect, it } from "vitest";
import { SetupError } from "../../../src/errors.js";
import { FolderStore } from "../../../src/stores/folder-store.js";
import { openStore } from "../../../src/stores/open-store.js";

describe("a store's URL", () => {
  it("with file: names a folder, whose name may hold a blank", async () => {
    const store = await openStore("file:///srv/my%20store/");
    expect(store).toBeInstanceOf(FolderStore);
    expect((store as FolderStore).folder).toBe("/srv/my store");
  });

  it("with s3: names a bucket and a prefix", async () => {
    await using store = await openStore("s3://bucket/a/b/?endpoint=http://127.0.0.1:1&region=eu-west-1&checksums=md5");
    expect(store.url).toContain("s3://bucket/a/b/");
  });

  it.each([
    ["/srv/store", /file:\/\/\/srv\/store/],
    ["http://127.0.0.1:9000", /file:\/\/\/FOLDER or s3:\/\//],
    ["file://host/store", /three slashes/],
    ["file:store", /three slashes/],
    ["file:../store", /three slashes/],
    ["file:///srv/a%2Fb", /three slashes/],
    ["file:///srv/a%00b", /three slashes/],
    ["file:///srv/%zz", /three slashes/],
    ["s3://bucket/%zz", /BUCKET/],
    ["s3://bucket/a%0ab", /BUCKET/],
    ["s3://bucket/a//b", /BUCKET/],
    ["s3://bucket/a#b", /BUCKET/],
    ["s3:///prefix", /BUCKET/],
    ["s3://b/?endpiont=http://x", /BUCKET/],
    ["s3://key:secret@bucket/", /AWS_ACCESS_KEY_ID/],
    ["s3://bucket/?checksums=none", /default or md5/],
    ["s3://bucket/?path-style=yes", /true or false/],
    ["s3://bucket/?endpoint=127.0.0.1:9000", /http:\/\/127/],
    ["s3://bucket/?endpoint=http://key:secret@127.0.0.1", /http:\/\/127/],
  ])("%s is refused with what to write instead, and no secret", async (url, hint) => {
    const refused = await openStore(url).catch((thrown: unknown) => thrown);
    expect(refused).toBeInstanceOf(SetupError);
    expect((refused as SetupError).hint).toMatch(hint);
    expect((refused as SetupError).message).not.toContain("secret");
  });

  it("with a setting that is misspelt names the one that was meant", async () => {
    await expect(openStore("s3://bucket/?endpiont=http://x")).rejects.toThrow(/did you mean endpoint/);
  });
});
