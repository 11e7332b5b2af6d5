import { endianness } from "node:os";
import sharp, { type Sharp } from "sharp";
import { AgentEnvError } from "../errors.js";
import type { Capture } from "./operations.js";
import type { Box } from "./spaces.js";

/** The JPEG quality of a screenshot that names none. */
const JPEG_QUALITY = 85;
/** The fastest setting whose files stay small on screens. */
const PNG = { compressionLevel: 2, adaptiveFiltering: false } as const;
/** Huffman tables made for the picture take more time than all the rest, for a tenth of the size. */
const JPEG = { optimiseCoding: false } as const;

/** How many buffers for raw pixels are kept at hand. */
const MAX_SPARE = 2;

// Every picture is decoded once or never, so a cache of decoded ones would only hold memory.
sharp.cache(false);

type Raw = Exclude<Capture, { png: Buffer }>;

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** The pixels of a frame. They are kept as a PNG, encoded at most once, and decoded only for a crop or a JPEG. */
export class Picture {
  /** Raw pixels, ten times as large as the PNG: let go of as soon as there is one and nothing reads them. */
  #rgb: Pixels | undefined;
  #readers = 0;
  #encoded = false;
  #png: Promise<Buffer> | undefined;
  #jpeg: { quality: number; data: Promise<Buffer> } | undefined;
  #base64: Buffer | undefined;

  private constructor(
    readonly width: number,
    readonly height: number,
    pixels: Buffer | Pixels,
    base64?: Buffer,
  ) {
    if (Buffer.isBuffer(pixels)) this.#png = Promise.resolve(pixels);
    else this.#rgb = pixels;
    this.#base64 = base64;
  }

  /** Throws a TypeError for a capture that is no picture. */
  static of(capture: Capture): Picture {
    if ("png" in capture) {
      const { width, height } = pngSize(capture.png);
      return new Picture(width, height, capture.png, capture.base64);
    }
    return new Picture(capture.width, capture.height, rgbOf(capture));
  }

  png(): Promise<Buffer> {
    this.#png ??= this.#reading(async (pixels) => {
      const png = await pixels.png(PNG).toBuffer();
      this.#encoded = true;
      return png;
    });
    return this.#png;
  }

  /** The PNG in base64, as the bytes of its ASCII; kept until `forgetEncoded`. */
  async pngBase64(): Promise<Buffer> {
    this.#base64 ??= toBase64(await this.png());
    return this.#base64;
  }

  /** A JPEG of the picture, from what there is at hand; the last one made is kept until `forgetEncoded`. */
  async jpeg(quality: number = JPEG_QUALITY): Promise<Buffer> {
    if (this.#jpeg?.quality !== quality) {
      const data = this.#reading((pixels) =>
        pixels
          .removeAlpha()
          .jpeg({ ...JPEG, quality })
          .toBuffer(),
      );
      this.#jpeg = { quality, data };
    }
    const jpeg = await this.#jpeg.data;
    if (this.#rgb !== undefined) this.png().catch(() => {});
    return jpeg;
  }

  /** Lets go of what can be made again. */
  forgetEncoded(): void {
    this.#jpeg = undefined;
    this.#base64 = undefined;
  }

  /** A part of the picture, its pixels as they are. */
  crop(box: Box): Promise<Picture> {
    const { left, top, width, height } = box;
    return this.#reading(async (pixels) => {
      const png = await pixels.extract({ left, top, width, height }).png(PNG).toBuffer();
      return new Picture(width, height, png);
    });
  }

  async #reading<T>(read: (pixels: Sharp) => Promise<T>): Promise<T> {
    if (this.#rgb === undefined) return read(sharp(await this.png(), { limitInputPixels: false }));
    this.#readers += 1;
    try {
      return await read(sharp(this.#rgb.bytes, { raw: { width: this.width, height: this.height, channels: 3 } }));
    } finally {
      this.#readers -= 1;
      if (this.#encoded && this.#readers === 0) {
        if (this.#rgb.ours) SPARE.give(this.#rgb.bytes);
        this.#rgb = undefined;
      }
    }
  }
}

/** Base64 as the bytes of its ASCII. */
export function toBase64(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("base64"), "latin1");
}

/** Three bytes a pixel. */
interface Pixels {
  readonly bytes: Buffer;
  /** Whether the buffer was made here, and not by the driver. */
  readonly ours: boolean;
}

/** Buffers to be used again: a screen's pixels are megabytes, and such buffers pile up until they are collected. */
class SpareBuffers {
  readonly #spare: Buffer[] = [];

  take(size: number): Buffer {
    const at = this.#spare.findIndex((buffer) => buffer.length === size);
    return (at === -1 ? undefined : this.#spare.splice(at, 1)[0]) ?? Buffer.allocUnsafeSlow(size);
  }

  give(buffer: Buffer): void {
    this.#spare.push(buffer);
    if (this.#spare.length > MAX_SPARE) this.#spare.shift();
  }
}

const SPARE = new SpareBuffers();

const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** A PNG's size, read off its header chunk (IHDR) alone. */
function pngSize(png: Buffer): Size {
  const isPng =
    png.length >= 24 && png.subarray(0, 8).equals(PNG_SIGNATURE) && png.toString("latin1", 12, 16) === "IHDR";
  if (!isPng) throw new TypeError("the capture is no PNG");
  return { width: png.readUInt32BE(16), height: png.readUInt32BE(20) };
}

/** A capture's pixels as sharp takes them, three bytes each; a fourth byte is no alpha and is dropped. */
function rgbOf({ raw, layout, width, height }: Raw): Pixels {
  const step = layout === "RGB" ? 3 : 4;
  if (raw.length !== width * height * step) {
    throw new TypeError(`the capture has ${raw.length} bytes, not those of ${width}x${height} pixels in ${layout}`);
  }
  if (layout === "RGB") return { bytes: raw, ours: false };
  const rgb = SPARE.take(width * height * 3);
  dropFourth(raw, rgb, layout === "BGRX");
  return { bytes: rgb, ours: true };
}

/** Copies three bytes of every four, turned round where `swap` says so. */
function dropFourth(from: Buffer, to: Buffer, swap: boolean): void {
  const [first, third] = swap ? [2, 0] : [0, 2];
  const pixels = from.length / 4;
  let done = 0;
  if (LITTLE_ENDIAN && from.byteOffset % 4 === 0 && to.byteOffset % 4 === 0) {
    // Four pixels at a time, as three words: the same in two thirds of the time.
    const words = new Uint32Array(from.buffer, from.byteOffset, pixels);
    const out = new Uint32Array(to.buffer, to.byteOffset, Math.floor((pixels * 3) / 4));
    const pixel = swap ? turned : straight;
    for (let at = 0; done + 4 <= pixels; done += 4, at += 3) {
      const b = pixel(words[done + 1] as number);
      const c = pixel(words[done + 2] as number);
      out[at] = pixel(words[done] as number) | (b << 24);
      out[at + 1] = (b >>> 8) | (c << 16);
      out[at + 2] = (c >>> 16) | (pixel(words[done + 3] as number) << 8);
    }
  }
  for (; done < pixels; done += 1) {
    to[done * 3] = from[done * 4 + first] as number;
    to[done * 3 + 1] = from[done * 4 + 1] as number;
    to[done * 3 + 2] = from[done * 4 + third] as number;
  }
}

const LITTLE_ENDIAN = endianness() === "LE";
const straight = (word: number) => word & 0xffffff;
const turned = (word: number) => ((word >>> 16) & 0xff) | (word & 0xff00) | ((word & 0xff) << 16);

/** The picture of a capture, the same one for the same capture. */
export class PictureCache {
  readonly #pictures = new WeakMap<Capture, Picture>();

  /** Throws `internal` for a capture that is no picture. */
  of(capture: Capture): Picture {
    let picture = this.#pictures.get(capture);
    if (picture === undefined) {
      try {
        picture = Picture.of(capture);
      } catch (thrown) {
        throw new AgentEnvError("internal", thrown instanceof Error ? thrown.message : String(thrown), {
          applied: "no",
          cause: thrown,
        });
      }
      this.#pictures.set(capture, picture);
    }
    return picture;
  }
}
