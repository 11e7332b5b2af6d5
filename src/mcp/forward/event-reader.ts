/** One server-sent event. Source: WHATWG HTML, "Interpreting an event stream". */
export interface ReadEvent {
  readonly data: string;
  readonly id: string | undefined;
}

/** Reads a stream of server-sent events, in pieces as they come. */
export class EventReader {
  readonly #decoder = new TextDecoder();
  #rest = "";
  #data: string[] = [];
  #id: string | undefined;
  /** When the server wants its client back, in milliseconds. */
  retryMs: number | undefined;

  constructor(private readonly read: (event: ReadEvent) => void) {}

  push(chunk: Uint8Array): void {
    const text = this.#rest + this.#decoder.decode(chunk, { stream: true });
    let from = 0;
    for (;;) {
      const end = lineEnd(text, from);
      if (end === undefined) break;
      this.#line(text.slice(from, end.at));
      from = end.next;
    }
    this.#rest = text.slice(from);
  }

  #line(line: string): void {
    if (line === "") {
      if (this.#data.length > 0 || this.#id !== undefined) this.read({ data: this.#data.join("\n"), id: this.#id });
      this.#data = [];
      this.#id = undefined;
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

/** Where a line ends and the next one begins; undefined while its end hasn't come, which may be a CR's LF. */
function lineEnd(text: string, from: number): { at: number; next: number } | undefined {
  const lf = text.indexOf("\n", from);
  const cr = text.indexOf("\r", from);
  if (cr === -1 || (lf !== -1 && lf < cr)) return lf === -1 ? undefined : { at: lf, next: lf + 1 };
  if (cr + 1 === text.length) return undefined;
  return { at: cr, next: text[cr + 1] === "\n" ? cr + 2 : cr + 1 };
}
