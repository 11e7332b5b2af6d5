import sharp from "sharp";
import { describe, expect, it } from "vitest";
import { Picture, PictureCache } from "../../../src/computer/images.js";
import { AgentEnvError } from "../../../src/errors.js";

const WIDTH = 40;
const HEIGHT = 30;

function colour(x: number, y: number): [number, number, number] {
  return [x * 6, y * 8, (x * y) % 256];
}

function raw(layout: "RGB" | "RGBX" | "BGRX"): Buffer {
  const step = layout === "RGB" ? 3 : 4;
  const pixels = Buffer.alloc(WIDTH * HEIGHT * step);
  for (let y = 0; y < HEIGHT; y += 1) {
    for (let x = 0; x < WIDTH; x += 1) {
      const [red, green, blue] = colour(x, y);
      pixels.set(layout === "BGRX" ? [blue, green, red] : [red, green, blue], (y * WIDTH + x) * step);
    }
  }
  return pixels;
}

async function pixelsOf(
  image: Buffer,
): Promise<{ at: (x: number, y: number) => number[]; width: number; height: number }> {
  const { data, info } = await sharp(image).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  return {
    width: info.width,
    height: info.height,
    at: (x, y) => [...data.subarray((y * info.width + x) * 3, (y * info.width + x) * 3 + 3)],
  };
}

describe("a picture", () => {
  it.each(["RGB", "RGBX", "BGRX"] as const)("of raw pixels in %s is a PNG of those pixels", async (layout) => {
    const picture = Picture.of({ raw: raw(layout), layout, width: WIDTH, height: HEIGHT });
    const png = await pixelsOf(await picture.png());
    expect([png.width, png.height]).toEqual([WIDTH, HEIGHT]);
    for (const [x, y] of [
      [0, 0],
      [39, 29],
      [17, 5],
    ] as const) {
      expect(png.at(x, y)).toEqual(colour(x, y));
    }
  });

  it("of a PNG is that very PNG, its size read off its header", async () => {
    const png = await sharp(raw("RGB"), { raw: { width: WIDTH, height: HEIGHT, channels: 3 } })
      .png()
      .toBuffer();
    const picture = Picture.of({ png });
    expect([picture.width, picture.height]).toEqual([WIDTH, HEIGHT]);
    expect(await picture.png()).toBe(png);
  });

  it("is encoded once", async () => {
    const picture = Picture.of({ raw: raw("RGB"), layout: "RGB", width: WIDTH, height: HEIGHT });
    expect(await picture.png()).toBe(await picture.png());
    expect(await picture.jpeg(60)).toBe(await picture.jpeg(60));
  });

  it("is the same one for the same capture, and another for another", () => {
    const cache = new PictureCache();
    const capture = { raw: raw("RGB"), layout: "RGB", width: WIDTH, height: HEIGHT } as const;
    expect(cache.of(capture)).toBe(cache.of(capture));
    expect(cache.of({ ...capture, raw: Buffer.alloc(capture.raw.length) })).not.toBe(cache.of(capture));
  });

  it("is a JPEG of the wanted quality, from raw pixels or from a PNG, whatever its alpha says", async () => {
    const fromRaw = Picture.of({ raw: raw("BGRX"), layout: "BGRX", width: WIDTH, height: HEIGHT });
    const clear = await sharp({
      create: { width: 8, height: 8, channels: 4, background: { r: 200, g: 10, b: 10, alpha: 0 } },
    })
      .png()
      .toBuffer();
    const fromPng = Picture.of({ png: clear });
    const [small, large] = [await fromRaw.jpeg(10), await fromRaw.jpeg(95)];
    expect(small.length).toBeLessThan(large.length);
    expect((await sharp(large).metadata()).format).toBe("jpeg");
    expect((await pixelsOf(await fromPng.jpeg())).at(4, 4)[0]).toBeGreaterThan(180);
  });

  it("that is cut has its parent's pixels, cut again too", async () => {
    const picture = Picture.of({ raw: raw("RGB"), layout: "RGB", width: WIDTH, height: HEIGHT });
    const cut = await picture.crop({ left: 3, top: 4, width: 20, height: 10 });
    const again = await cut.crop({ left: 5, top: 5, width: 2, height: 3 });
    expect([cut.width, cut.height, again.width, again.height]).toEqual([20, 10, 2, 3]);
    expect((await pixelsOf(await cut.png())).at(19, 9)).toEqual(colour(22, 13));
    expect((await pixelsOf(await again.png())).at(1, 2)).toEqual(colour(9, 11));
  });

  it("is refused where the capture is none: no PNG, or not as many bytes as its size says", () => {
    const cache = new PictureCache();
    for (const capture of [
      { png: Buffer.from("GIF89a") },
      { raw: Buffer.alloc(10), layout: "RGB", width: 2, height: 2 } as const,
    ]) {
      expect(() => cache.of(capture)).toThrow(AgentEnvError);
    }
  });
});
