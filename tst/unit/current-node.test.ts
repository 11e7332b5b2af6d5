import { afterEach, describe, expect, it, vi } from "vitest";

describe("the public surface", () => {
  const { versions } = process;
  afterEach(() => {
    Object.defineProperty(process, "versions", { value: versions });
    vi.resetModules();
  });

  it("says which Node it needs on an older one, before a package of ours fails there", async () => {
    Object.defineProperty(process, "versions", { value: { ...versions, node: "20.20.2" } });
    vi.resetModules();
    vi.doMock("undici", () => {
      throw new Error("it was loaded");
    });
    await expect(import("../../src/index.js")).rejects.toMatchObject({
      name: "SetupError",
      message: "agent-env needs Node 22.19 or newer, and this is 20.20.2",
      hint: expect.stringContaining("newer"),
    });
  });
});
