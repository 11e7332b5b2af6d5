import type { CallToolResult, JsonObject } from "../protocol/tool.js";
import type { Frame } from "./frames.js";

/** An image as a result carries it. */
export interface ResultImage {
  /** Base64. */
  readonly data: string;
  readonly mimeType: string;
}

/** A computer_* tool's answer: its summary as text, then the image where there is one, and all of it as structured content. */
export function answer(structured: JsonObject & { summary: string }, image?: ResultImage): CallToolResult {
  return {
    content: [
      { type: "text", text: structured.summary },
      ...(image === undefined ? [] : [{ type: "image", ...image } as const]),
    ],
    structuredContent: structured,
  };
}

/** A frame's pixels as an image block. */
export async function imageOf(frame: Frame, format: "png" | "jpeg" = "png", quality?: number): Promise<ResultImage> {
  const data = format === "png" ? await frame.picture.png() : await frame.picture.jpeg(quality);
  return { data: data.toString("base64"), mimeType: `image/${format}` };
}
