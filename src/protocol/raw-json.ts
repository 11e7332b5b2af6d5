/** JSON text in three pieces, the middle one as the bytes that it is sent as. */
export type JsonParts = readonly [before: string, bytes: Buffer, after: string];

/**
 * A JSON value that is already text. Another server's answer goes out as the bytes it came in as, so that unknown keys,
 * key order and numbers as they were written survive, and a large image is neither parsed nor serialised twice.
 */
export class RawJson {
  /** Where the text, or most of it, is there as bytes: nobody has to make them from it. */
  readonly parts: JsonParts | undefined;
  #text: string | undefined;

  /** One JSON value, known to be valid. */
  constructor(json: string | JsonParts) {
    if (typeof json === "string") this.#text = json;
    else this.parts = json;
  }

  get text(): string {
    this.#text ??= joined(this.parts as JsonParts);
    return this.#text;
  }

  /** The value, parsed anew at each call. */
  value(): unknown {
    return JSON.parse(this.text);
  }

  /** So that a RawJson inside a value that is serialised the usual way gives the right JSON, though not the same text. */
  toJSON(): unknown {
    return this.value();
  }
}

export function joined([before, bytes, after]: JsonParts): string {
  return `${before}${bytes.toString("utf8")}${after}`;
}

/** The error that another server answered in the place of a result: the text of one JSON-RPC error object. */
export class RawError extends RawJson {}

/** A tool's result that is text already, with the part of it that the tool's output schema speaks of. */
export class RawResult extends RawJson {
  constructor(
    json: JsonParts,
    readonly structuredContent: { [key: string]: unknown },
  ) {
    super(json);
  }
}
