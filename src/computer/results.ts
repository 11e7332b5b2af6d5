import { RawResult } from "../protocol/raw-json.js";
import type { JsonObject, ToolResult } from "../protocol/tool.js";
import type { Frame } from "./frames.js";
import { toBase64 } from "./images.js";

/** An image as a result carries it. */
export interface ResultImage {
  /** Base64, as the bytes that it is sent as. */
  readonly data: Buffer;
  readonly mimeType: string;
}

/** A computer_* tool's answer: its summary as text, then the image where there is one, and all of it as structured content. */
export function answer(structured: JsonObject & { summary: string }, image?: ResultImage): ToolResult {
  const text = { type: "text", text: structured.summary } as const;
  if (image === undefined) return { content: [text], structuredContent: structured };
  // The image is by far the most of it, and base64 needs no escaping: it isn't made a string and serialised.
  const before = `{"content":[${JSON.stringify(text)},{"type":"image","data":"`;
  const after = `","mimeType":"${image.mimeType}"}],"structuredContent":${JSON.stringify(structured)}}`;
  return new RawResult([before, image.data, after], structured);
}

/** A frame's pixels as an image block. */
export async function imageOf(frame: Frame, format: "png" | "jpeg" = "png", quality?: number): Promise<ResultImage> {
  const data = format === "png" ? await frame.picture.pngBase64() : toBase64(await frame.picture.jpeg(quality));
  return { data, mimeType: `image/${format}` };
}
