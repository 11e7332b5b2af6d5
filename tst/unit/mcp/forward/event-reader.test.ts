import { describe, expect, it } from "vitest";
import { EventReader, type ReadEvent } from "../../../../src/mcp/forward/event-reader.js";

/** The events of a stream that comes in pieces of so many bytes. */
function read(stream: string, bytes: number): ReadEvent[] {
  const events: ReadEvent[] = [];
  const reader = new EventReader((event) => events.push(event));
  const all = Buffer.from(stream);
  for (let at = 0; at < all.length; at += bytes) reader.push(all.subarray(at, at + bytes));
  return events;
}

describe("a stream of events", () => {
  it("is read alike however it is cut into pieces, with each kind of line end", () => {
    const stream =
      ": hello\r\nid: 1\r\ndata: é\r\ndata:  two\r\n\r\ndata: 3\n\nid: 4\rdata\r\rretry: 5\n\ndata: 6\r\n\r\ndata: never";
    const whole = read(stream, stream.length * 2);
    expect(whole).toEqual([
      { data: "é\n two", id: "1" },
      { data: "3", id: undefined },
      { data: "", id: "4" },
      { data: "6", id: undefined },
    ]);
    for (let bytes = 1; bytes < 40; bytes += 1) expect(read(stream, bytes)).toEqual(whole);
  });

  it("is read in time that grows with its length, where an event is long", () => {
    const length = 32 << 20;
    const before = performance.now();
    const [event] = read(`data: ${"x".repeat(length)}\n\n`, 64 << 10);
    expect(event?.data).toHaveLength(length);
    expect(performance.now() - before).toBeLessThan(1_500);
  });

  it.each([
    ["a line", "x"],
    ["an event", `data: ${"x".repeat(1_000)}\n`],
  ])("is given up where %s has no end", (_what, part) => {
    const reader = new EventReader(() => {});
    const piece = Buffer.from(part.repeat((4 << 20) / part.length));
    const pushed = () => {
      for (let mebibytes = 0; mebibytes < 300; mebibytes += 4) reader.push(piece);
    };
    expect(pushed).toThrow(RangeError);
  });
});
