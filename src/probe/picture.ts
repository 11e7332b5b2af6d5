import sharp from "sharp";
import type { CallToolResult, ImageContent } from "../protocol/tool.js";
import { Finding } from "./check.js";

/** An answer's image, decoded. */
export class Picture {
  private constructor(
    readonly mimeType: string,
    /** What the bytes themselves say they are. */
    readonly format: string,
    readonly width: number,
    readonly height: number,
    private readonly rgb: Buffer,
  ) {}

  static async of(result: CallToolResult): Promise<Picture> {
    const block = result.content.find((each): each is ImageContent => each.type === "image");
    if (block === undefined) throw new Finding("the answer has no image");
    const image = sharp(Buffer.from(block.data, "base64"), { limitInputPixels: false });
    const { format } = await image.metadata();
    const { data, info } = await image.removeAlpha().toColourspace("srgb").raw().toBuffer({ resolveWithObject: true });
    return new Picture(block.mimeType, format, info.width, info.height, data);
  }

  /** A pixel's colour as `#rrggbb`; undefined outside. */
  at(x: number, y: number): string | undefined {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) return undefined;
    const from = (y * this.width + x) * 3;
    return `#${this.rgb.toString("hex", from, from + 3)}`;
  }

  /** The first of this picture's pixels that isn't the one at its place in `whole`, from (`left`, `top`) on. */
  firstUnlike(whole: Picture, left: number, top: number): [x: number, y: number] | undefined {
    for (let y = 0; y < this.height; y += 1) {
      const own = this.rgb.subarray(y * this.width * 3, (y + 1) * this.width * 3);
      const from = ((top + y) * whole.width + left) * 3;
      if (own.equals(whole.rgb.subarray(from, from + own.length))) continue;
      for (let x = 0; x < this.width; x += 1) {
        if (this.at(x, y) !== whole.at(left + x, top + y)) return [x, y];
      }
    }
    return undefined;
  }
}
