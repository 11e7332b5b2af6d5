import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readEnvFile } from "../../../src/bundles/env-file.js";
import { driverModule } from "../../../src/bundles/load-class.js";
import { SetupError } from "../../../src/errors.js";
import { packageRoot } from "../../../src/package-root.js";

const folder = mkdtempSync(join(tmpdir(), "env-file-"));
afterAll(() => rmSync(folder, { recursive: true }));

function read(toml: string) {
  writeFileSync(join(folder, "env.toml"), toml);
  return readEnvFile(folder);
}

function refusal(toml: string): string {
  try {
    read(toml);
  } catch (thrown) {
    if (thrown instanceof SetupError) return thrown.message.replaceAll(folder, "");
    throw thrown;
  }
  throw new Error("it wasn't refused");
}

describe("env.toml", () => {
  it("is read, the desk's own included", () => {
    expect(readEnvFile(join(packageRoot, "bundles/desk"))).toEqual({
      type: "computer",
      driver: "cua-driver",
      display: { width: 1280, height: 800 },
      apps: { start: ["thunar"], packages: [] },
    });
    expect(read('type = "class"\nmodule = "shop.ts#Shop"\n[session]\nidle_s = 60\n').session).toEqual({ idle_s: 60 });
  });

  it("refuses an unknown key, naming the file, the key, what is near and what is allowed", () => {
    const text = refusal(
      'type = "computer"\ndriver = "x"\ncolour = 1\n[display]\nwidht = 3\nwidth = 1280\nheight = 800\n',
    );
    expect(text).toContain('/env.toml: unknown key "display.widht", did you mean "width"?; allowed: width, height');
    expect(text).toMatch(/unknown key "colour".*allowed: type, driver, module, name/);
  });

  it("refuses a bad size, naming the key, what is allowed and what it is", () => {
    const text = refusal('type = "computer"\ndriver = "x"\n[display]\nwidth = 12\nheight = "high"\n');
    expect(text).toMatch(/display\.width: .*320.*\(it is 12\)/);
    expect(text).toMatch(/display\.height: .*\(it is "high"\)/);
  });

  it("refuses a computer without a driver, a class with one, and a type that there isn't", () => {
    expect(refusal('type = "computer"')).toContain('driver: is needed for type = "computer"');
    expect(refusal('type = "class"\nmodule = "a.ts#A"\ndriver = "x"')).toContain('driver: is not for type = "class"');
    expect(refusal('type = "robot"')).toMatch(/type: .*computer.*class/);
  });

  it("refuses what isn't TOML with its line, and a folder without one", () => {
    expect(refusal('type = "computer"\ndriver = \n')).toMatch(/env\.toml, line 2: it is not TOML/);
    expect(() => readEnvFile(join(folder, "nowhere"))).toThrow(/there is no folder/);
  });

  it("refuses a driver that no alias names, with those that there are", () => {
    expect(driverModule("cua-driver", "f")).toBe("drivers/cua-driver/driver.ts#CuaDriver");
    try {
      driverModule("cua-drive", "f/env.toml: driver");
      expect.unreachable();
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(SetupError);
      expect((thrown as SetupError).message).toBe('f/env.toml: driver: no driver is called "cua-drive"');
      expect((thrown as SetupError).hint).toMatch(/did you mean "cua-driver"\?.*reference, cua-driver/);
    }
  });
});
