import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EventStream } from "../../../src/mcp/event-stream.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A response that keeps what is written to it. */
class Response extends EventEmitter {
  text = "";
  destroyed = false;
  headersSent = false;
  writableEnded = false;
  writableLength = 0;

  writeHead(): void {
    this.headersSent = true;
  }

  flushHeaders(): void {}

  write(text: string): void {
    this.text += text;
  }

  end(): void {
    this.writableEnded = true;
    this.emit("finish");
    this.emit("close");
  }

  /** The client is gone. */
  drop(): void {
    this.destroyed = true;
    this.emit("close");
  }

  static of(): { response: ServerResponse; seen: Response } {
    const seen = new Response();
    return { response: seen as unknown as ServerResponse, seen };
  }
}

describe("an event stream", () => {
  it("gives a client that comes back what it hasn't seen, and then is done", () => {
    const done = vi.fn();
    const stream = new EventStream("3", "session", true, 1_000, done);
    const first = Response.of();
    stream.attach(first.response, 0);
    stream.push('{"n":1}');
    expect(first.seen.text).toBe('id: 3-0\nretry: 1000\ndata: \n\nid: 3-1\nevent: message\ndata: {"n":1}\n\n');
    first.seen.drop();
    stream.push('{"n":2}');
    stream.end();
    expect(done).not.toHaveBeenCalled();
    const second = Response.of();
    stream.attach(second.response, 1);
    expect(second.seen.text).toBe('id: 3-2\nevent: message\ndata: {"n":2}\n\n');
    expect(done).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is forgotten when no client comes back for its end within a minute", () => {
    const done = vi.fn();
    const stream = new EventStream("1", "session", true, 1_000, done);
    const { response, seen } = Response.of();
    stream.attach(response, 0);
    seen.drop();
    vi.advanceTimersByTime(120_000);
    stream.push("{}");
    stream.end();
    vi.advanceTimersByTime(59_000);
    expect(done).not.toHaveBeenCalled();
    vi.advanceTimersByTime(2_000);
    expect(done).toHaveBeenCalledTimes(1);
  });

  it("keeps no more than its bound, and nothing for a client that knows no event ids", () => {
    const stream = new EventStream("1", "session", true, 100, () => {});
    for (let n = 0; n < 10; n += 1) stream.push(`{"n":${n}}`);
    const { response, seen } = Response.of();
    stream.attach(response, 0);
    expect(seen.text).toContain('{"n":9}');
    expect(seen.text).not.toContain('{"n":5}');
    const old = new EventStream("1", "session", false, 100, () => {});
    old.push("{}");
    const late = Response.of();
    old.attach(late.response, 0);
    expect(late.seen.text).toBe("");
  });
});
