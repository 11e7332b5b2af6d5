import { endianness } from "node:os";
import type { Capture } from "./operations.js";
import { Strip } from "./png-strips.js";

export type RawCapture = Exclude<Capture, { png: Buffer }>;

/** Into how many strips the screen is cut: what changed on it is seldom higher than one or two. */
const STRIPS = 8;

/** The screen as it was captured last: of the next capture only what has changed on it is worked on. */
export class Canvas {
  #shown: { width: number; height: number; layout: RawCapture["layout"] } | undefined;
  #raw = Buffer.alloc(0);
  #rgb = Buffer.alloc(0);
  #strips: readonly Strip[] = [];

  /**
   * Takes over what a capture shows, and answers its strips from the top. Those in which nothing has changed since the capture
   * before are the same ones, and where nothing has changed at all it is the same array. Throws a TypeError for a capture that
   * hasn't as many bytes as its size says.
   */
  draw({ raw, layout, width, height }: RawCapture): readonly Strip[] {
    const step = layout === "RGB" ? 3 : 4;
    if (raw.length !== width * height * step) {
      throw new TypeError(`the capture has ${raw.length} bytes, not those of ${width}x${height} pixels in ${layout}`);
    }
    const isSame =
      this.#shown?.width === width && this.#shown.height === height && this.#shown.layout === layout && height > 0;
    if (!isSame) {
      this.#shown = { width, height, layout };
      this.#raw = Buffer.allocUnsafeSlow(raw.length);
      this.#rgb = Buffer.allocUnsafeSlow(width * height * 3);
      this.#strips = [];
    }
    // Whole words of pixels in each strip, whatever the width.
    const rows = Math.max(4, Math.ceil(height / STRIPS / 4) * 4);
    const strips = Array.from({ length: Math.ceil(height / rows) }, (_, index) => {
      const top = index * rows;
      const [from, to] = [top * width, Math.min(height, top + rows) * width];
      const [now, before] = [raw, this.#raw].map((each) => each.subarray(from * step, to * step)) as [Buffer, Buffer];
      const known = this.#strips[index];
      if (known !== undefined && now.equals(before)) return known;
      now.copy(before);
      toRgb(now, this.#rgb.subarray(from * 3, to * 3), layout);
      return new Strip(top, Math.min(height, top + rows) - top);
    });
    const hasChanged = strips.some((strip, index) => strip !== this.#strips[index]);
    if (hasChanged || strips.length === 0) this.#strips = strips;
    return this.#strips;
  }

  /** A copy of its pixels, three bytes each, in a buffer that `own` makes. */
  pixels(own: (size: number) => Buffer): Buffer {
    const rgb = own(this.#rgb.length);
    this.#rgb.copy(rgb);
    return rgb;
  }
}

/** A fourth byte of a pixel is no alpha and is dropped. */
function toRgb(from: Buffer, to: Buffer, layout: RawCapture["layout"]): void {
  if (layout === "RGB") from.copy(to);
  else dropFourth(from, to, layout === "BGRX");
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
