/**
 * A JSON value that is already text. Another server's answer goes out as the bytes it came in as, so that unknown keys,
 * key order and numbers as they were written survive, and a large image is neither parsed nor serialised twice.
 */
export class RawJson {
  constructor(
    /** One JSON value, known to be valid. */
    readonly text: string,
  ) {}

  /** The value, parsed anew at each call. */
  value(): unknown {
    return JSON.parse(this.text);
  }

  /** So that a RawJson inside a value that is serialised the usual way gives the right JSON, though not the same text. */
  toJSON(): unknown {
    return this.value();
  }
}

/** The error that another server answered in the place of a result: the text of one JSON-RPC error object. */
export class RawError extends RawJson {}
