import { crc32, inflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { Canvas, type RawCapture } from "../../../src/computer/canvas.js";
import { PictureCache } from "../../../src/computer/images.js";

/** Pixels of any colour, the same for the same seed. */
function noise(width: number, height: number, seed: number, step = 4): Buffer {
  const pixels = Buffer.alloc(width * height * step);
  let state = seed + 1;
  for (let at = 0; at < pixels.length; at += 1) {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
    pixels[at] = state >>> 16;
  }
  return pixels;
}

/** A PNG's pixels, read by the specification: each chunk's CRC, the checksum of the data, and no filter in any row. */
function pixelsOf(png: Buffer): { width: number; height: number; rgb: Buffer } {
  const data: Buffer[] = [];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const body = png.subarray(at + 4, at + 8 + length);
    expect(png.readUInt32BE(at + 8 + length)).toBe(crc32(body));
    if (body.toString("latin1", 0, 4) === "IDAT") data.push(body.subarray(4));
    at += 12 + length;
  }
  expect(png.toString("latin1", png.length - 8, png.length - 4)).toBe("IEND");
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const scanlines = inflateSync(Buffer.concat(data));
  const row = width * 3 + 1;
  expect(scanlines.length).toBe(row * height);
  const rows = Array.from({ length: height }, (_, y) => scanlines.subarray(y * row, (y + 1) * row));
  expect(rows.every((each) => each[0] === 0)).toBe(true);
  return { width, height, rgb: Buffer.concat(rows.map((each) => each.subarray(1))) };
}

/** What a capture's pixels are, the slow way. */
function rgbOf({ raw, layout, width, height }: RawCapture): Buffer {
  const step = layout === "RGB" ? 3 : 4;
  const [red, blue] = layout === "BGRX" ? [2, 0] : [0, 2];
  return Buffer.from(
    Array.from({ length: width * height }, (_, at) =>
      [red, 1, blue].map((channel) => raw[at * step + channel] as number),
    ).flat(),
  );
}

describe("a canvas", () => {
  it.each([
    [64, 48],
    [63, 37],
    [1, 1],
    [5, 200],
    [1366, 3],
  ])(
    "shows each capture of %i x %i pixels as a PNG of those very pixels, whatever changed before",
    async (width, height) => {
      const pictures = new PictureCache();
      let raw = noise(width, height, 7);
      for (let taken = 0; taken < 12; taken += 1) {
        raw = Buffer.from(raw);
        const from = (taken * 7_919 * 4) % raw.length;
        noise(width, 1, taken).copy(raw, from, 0, Math.min(width * 4, raw.length - from));
        const layout = taken < 6 ? "BGRX" : "RGBX";
        const capture = { raw, layout, width, height } as const;
        const shown = pixelsOf(await pictures.of(capture).png());
        expect([shown.width, shown.height]).toEqual([width, height]);
        expect(shown.rgb.equals(rgbOf(capture))).toBe(true);
      }
    },
  );

  it("follows changes of size and layout", async () => {
    const pictures = new PictureCache();
    for (const [width, height, layout] of [
      [64, 48, "BGRX"],
      [48, 64, "BGRX"],
      [64, 48, "RGB"],
      [64, 48, "RGBX"],
    ] as const) {
      const capture = { raw: noise(width, height, 3, layout === "RGB" ? 3 : 4), layout, width, height };
      expect(pixelsOf(await pictures.of(capture).png()).rgb.equals(rgbOf(capture))).toBe(true);
    }
  });

  it("works on nothing again that is as it was, though the driver reads into the same buffer", () => {
    const canvas = new Canvas();
    const capture = { raw: noise(64, 64, 1), layout: "BGRX", width: 64, height: 64 } as const;
    const first = canvas.draw(capture);
    expect(canvas.draw(capture)).toBe(first);
    capture.raw.writeUInt32LE(0x12345678, 64 * 4 * 20);
    const second = canvas.draw(capture);
    expect(second.map((strip, index) => strip === first[index])).toEqual([
      ...[true, true, false, true],
      ...[true, true, true, true],
    ]);
    expect(canvas.pixels(Buffer.alloc).equals(rgbOf(capture))).toBe(true);
  });

  it("shows the same picture where nothing has changed, encoded once", () => {
    const pictures = new PictureCache();
    const capture = { raw: noise(64, 64, 1), layout: "BGRX", width: 64, height: 64 } as const;
    const picture = pictures.of(capture);
    expect(pictures.of({ ...capture })).toBe(picture);
    capture.raw.writeUInt32LE(0x12345678, 0);
    expect(pictures.of({ ...capture })).not.toBe(picture);
  });

  it("makes pictures that stay as they were when the screen goes on", async () => {
    const pictures = new PictureCache();
    const before = { raw: noise(64, 64, 1), layout: "BGRX", width: 64, height: 64 } as const;
    const [old, expected] = [pictures.of(before), rgbOf(before)];
    const after = { ...before, raw: noise(64, 64, 2) };
    const jpeg = old.jpeg(95);
    expect(pixelsOf(await pictures.of(after).png()).rgb.equals(rgbOf(after))).toBe(true);
    await jpeg;
    expect(pixelsOf(await old.png()).rgb.equals(expected)).toBe(true);
  });
});
