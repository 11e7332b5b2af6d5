import sharp from "sharp";

/** The colour of one pixel of a picture, 0xRRGGBB. */
export async function colourAt(png: Buffer, left: number, top: number): Promise<number> {
  const { data } = await sharp(png)
    .extract({ left, top, width: 1, height: 1 })
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return ((data[0] ?? 0) << 16) | ((data[1] ?? 0) << 8) | (data[2] ?? 0);
}
