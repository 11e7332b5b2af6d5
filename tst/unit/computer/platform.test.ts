import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { detectPlatform } from "../../../src/computer/platform.js";

describe("the platform", () => {
  it("is named as the card names it, from the system and its os-release", () => {
    const folder = mkdtempSync(join(tmpdir(), "agentenv-platform-"));
    const release = join(folder, "os-release");
    writeFileSync(release, 'NAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="12"\n# a comment\nBUG_REPORT_URL=\n');
    const platform = detectPlatform("x11", { platform: "linux", arch: "x64" }, release);
    rmSync(folder, { recursive: true });
    expect(platform).toEqual({ os: "linux", distribution: "debian", version: "12", arch: "amd64", display: "x11" });
  });

  it("leaves out what can't be told", () => {
    expect(detectPlatform(undefined, { platform: "linux", arch: "arm64" }, "/nowhere")).toEqual({
      os: "linux",
      arch: "arm64",
    });
    expect(detectPlatform(undefined, { platform: "darwin", arch: "arm64" })).toEqual({ os: "macos", arch: "arm64" });
  });
});
