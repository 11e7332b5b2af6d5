import { describe, expect, it } from "vitest";
import { ProgressBar } from "../../../src/cli/progress.js";

function screen(isTTY: boolean) {
  const written: string[] = [];
  const stream = { isTTY, write: (text: string) => written.push(text) } as unknown as NodeJS.WriteStream;
  return { written, stream };
}

describe("a progress bar", () => {
  it("rewrites one line, says how many of how many, and takes itself away", () => {
    const { written, stream } = screen(true);
    {
      using bar = new ProgressBar("storing", stream);
      for (let done = 1; done <= 100; done += 1) bar.update(done, 100);
    }
    expect(written.every((text) => text.startsWith("\r"))).toBe(true);
    expect(written.at(-2)).toBe(`\r\x1b[Kstoring [${"#".repeat(24)}] 100/100`);
    expect(written.at(-1)).toBe("\r\x1b[K");
    expect(written.length).toBeLessThan(10);
  });

  it("draws nothing where nobody looks, or where there is little to do", () => {
    const file = screen(false);
    const short = screen(true);
    {
      using toFile = new ProgressBar("storing", file.stream);
      using ofFew = new ProgressBar("storing", short.stream);
      toFile.update(50, 100);
      ofFew.update(2, 3);
    }
    expect([...file.written, ...short.written]).toEqual([]);
  });
});
