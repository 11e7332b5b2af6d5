import sharp, { type Sharp } from "sharp";
import { AgentEnvError } from "../errors.js";
import { Canvas, type RawCapture } from "./canvas.js";
import type { Capture } from "./operations.js";
import { pngOf, type Strip } from "./png-strips.js";
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

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** The pixels of a frame. They are kept as a PNG, encoded at most once, and decoded only for a crop or a JPEG. */
export class Picture {
  /** Raw pixels, ten times as large as the PNG: let go of as soon as there is one and nothing reads them. */
  #rgb: Buffer | undefined;
  #strips: readonly Strip[] = [];
  #readers = 0;
  #encoded = false;
  #png: Promise<Buffer> | undefined;
  #jpeg: { quality: number; data: Promise<Buffer> } | undefined;
  #base64: Buffer | undefined;

  private constructor(
    readonly width: number,
    readonly height: number,
    pixels: { png: Buffer; base64?: Buffer } | { rgb: Buffer; strips: readonly Strip[] },
  ) {
    if ("png" in pixels) {
      this.#png = Promise.resolve(pixels.png);
      this.#base64 = pixels.base64;
    } else {
      this.#rgb = pixels.rgb;
      this.#strips = pixels.strips;
    }
  }

  /** Throws a TypeError for a capture that is no picture. */
  static of(capture: Capture): Picture {
    if (!("png" in capture)) return new PictureCache().drawn(capture);
    const { width, height } = pngSize(capture.png);
    return new Picture(width, height, capture);
  }

  /** What a canvas shows now, in the strips that it has. */
  static shownBy(canvas: Canvas, strips: readonly Strip[], { width, height }: Size): Picture {
    return new Picture(width, height, { rgb: canvas.pixels(SPARE.take), strips });
  }

  png(): Promise<Buffer> {
    this.#png ??= this.#holding(async (rgb) => {
      const png = await pngOf(this.#strips, rgb, this.width, this.height);
      this.#encoded = true;
      this.#strips = [];
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
      return new Picture(width, height, { png });
    });
  }

  async #reading<T>(read: (pixels: Sharp) => Promise<T>): Promise<T> {
    if (this.#rgb === undefined) return read(sharp(await this.png(), { limitInputPixels: false }));
    return this.#holding((rgb) => read(sharp(rgb, { raw: { width: this.width, height: this.height, channels: 3 } })));
  }

  /** Works on the raw pixels, and lets go of them once there is a PNG and nobody else works on them. */
  async #holding<T>(work: (rgb: Buffer) => Promise<T>): Promise<T> {
    const rgb = this.#rgb as Buffer;
    this.#readers += 1;
    try {
      return await work(rgb);
    } finally {
      this.#readers -= 1;
      if (this.#encoded && this.#readers === 0) {
        SPARE.give(rgb);
        this.#rgb = undefined;
      }
    }
  }
}

/** Base64 as the bytes of its ASCII. */
export function toBase64(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("base64"), "latin1");
}

/** Buffers to be used again: a screen's pixels are megabytes, and such buffers pile up until they are collected. */
class SpareBuffers {
  readonly #spare: Buffer[] = [];

  readonly take = (size: number): Buffer => {
    const at = this.#spare.findIndex((buffer) => buffer.length === size);
    return (at === -1 ? undefined : this.#spare.splice(at, 1)[0]) ?? Buffer.allocUnsafeSlow(size);
  };

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

/** The picture of a capture: the same one for the same capture, and for one in which nothing has changed since the last. */
export class PictureCache {
  readonly #canvas = new Canvas();
  readonly #pictures = new WeakMap<Capture, Picture>();
  readonly #shown = new WeakMap<readonly Strip[], Picture>();

  /** Throws `internal` for a capture that is no picture. */
  of(capture: Capture): Picture {
    let picture = this.#pictures.get(capture);
    if (picture === undefined) {
      try {
        picture = "png" in capture ? Picture.of(capture) : this.drawn(capture);
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

  /** Throws a TypeError for a capture that is no picture. */
  drawn(capture: RawCapture): Picture {
    const strips = this.#canvas.draw(capture);
    let picture = this.#shown.get(strips);
    if (picture === undefined) {
      picture = Picture.shownBy(this.#canvas, strips, capture);
      this.#shown.set(strips, picture);
    }
    return picture;
  }
}
