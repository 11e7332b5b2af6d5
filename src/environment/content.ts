import type { ContentBlock, ImageContent, TextContent } from "../protocol/tool.js";

/** The blocks of which a tool's answer or a prompt's message is made. Source: Model Context Protocol 2025-11-25, `ContentBlock`. */

/** A block of text. */
export function text(words: string): TextContent {
  return { type: "text", text: words };
}

/** A picture, from its bytes or their base64. */
export function image(bytes: Uint8Array | string, mimeType: string): ImageContent {
  return { type: "image", data: base64(bytes), mimeType };
}

/** A sound, from its bytes or their base64. */
export function audio(bytes: Uint8Array | string, mimeType: string): ContentBlock {
  return { type: "audio", data: base64(bytes), mimeType };
}

/** A resource inside the answer: its text, or its bytes. */
export function embeddedResource(uri: string, content: string | Uint8Array, mimeType?: string): ContentBlock {
  const kind = mimeType === undefined ? {} : { mimeType };
  return {
    type: "resource",
    resource: typeof content === "string" ? { uri, ...kind, text: content } : { uri, ...kind, blob: base64(content) },
  };
}

/** A resource that the client may read if it wants to. */
export function resourceLink(
  uri: string,
  name: string,
  more: { mimeType?: string; description?: string } = {},
): ContentBlock {
  return { type: "resource_link", uri, name, ...more };
}

function base64(bytes: Uint8Array | string): string {
  return typeof bytes === "string"
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
}
