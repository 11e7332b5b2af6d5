/** One server-sent event. Source: WHATWG HTML, "Interpreting an event stream". */
export interface ReadEvent {
  readonly data: string;
  readonly id: string | undefined;
}

/** An event that is longer than this many characters ends the stream, so that a server gone mad doesn't fill the memory. */
const MAX_EVENT_LENGTH = 256 << 20;

/** Reads a stream of server-sent events, in pieces as they come. Throws a RangeError for an event that is too long. */
export class EventReader {
  readonly #decoder = new TextDecoder();
  /** What has come of a line whose end hasn't: in pieces, as putting them together at each one takes seconds for a long line. */
  #pieces: string[] = [];
  /** How much has come since the last event. */
  #length = 0;
  #data: string[] = [];
  #id: string | undefined;
  /** When the server wants its client back, in milliseconds. */
  retryMs: number | undefined;

  constructor(private readonly read: (event: ReadEvent) => void) {}

  push(chunk: Uint8Array): void {
    const piece = this.#decoder.decode(chunk, { stream: true });
    const heldBack = this.#pieces.at(-1)?.endsWith("\r") === true;
    this.#pieces.push(piece);
    this.#length += piece.length;
    if (this.#length > MAX_EVENT_LENGTH) throw new RangeError("an event is too long");
    if (!heldBack && !/[\r\n]/.test(piece)) return;
    const text = this.#pieces.join("");
    let from = 0;
    let lf = text.indexOf("\n");
    let cr = text.indexOf("\r");
    for (;;) {
      // Looked for only once it was passed: where lines end in the one, the other may be far away.
      if (lf !== -1 && lf < from) lf = text.indexOf("\n", from);
      if (cr !== -1 && cr < from) cr = text.indexOf("\r", from);
      const end = cr === -1 || (lf !== -1 && lf < cr) ? lf : cr;
      // A CR at the end of what has come may be one with an LF that hasn't.
      if (end === -1 || (end === cr && cr + 1 === text.length)) break;
      this.#line(text.slice(from, end));
      from = end === cr && text[cr + 1] === "\n" ? cr + 2 : end + 1;
    }
    this.#pieces = [text.slice(from)];
  }

  #line(line: string): void {
    if (line === "") {
      if (this.#data.length > 0 || this.#id !== undefined) this.read({ data: this.#data.join("\n"), id: this.#id });
      this.#data = [];
      this.#id = undefined;
      this.#length = 0;
      return;
    }
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#data.push(value);
    else if (field === "id") this.#id = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
  }
}
