import { describe, expect, it } from "vitest";
import { parseLargeJson } from "../../../src/http/large-json.js";

describe("parseLargeJson", () => {
  it("gives a large string as the bytes it is made of, and all else as JSON.parse does", () => {
    const file = Buffer.alloc(65 << 20, "QUJD");
    const json = Buffer.concat([
      Buffer.from('{"a":"quote \\" and \\\\","n":[1,2],"file":{"bytes":"'),
      file,
      Buffer.from('","name":"f\\u0020x"},"last":"\\\\"}'),
    ]);
    const parsed = parseLargeJson(json) as { file: { bytes: Buffer; name: string } };
    expect(parsed.file.bytes.equals(file)).toBe(true);
    expect({ ...parsed, file: parsed.file.name }).toEqual({ a: 'quote " and \\', n: [1, 2], file: "f x", last: "\\" });
  });

  it("refuses a large body that isn't JSON", () => {
    expect(() => parseLargeJson(Buffer.alloc(65 << 20, "{"))).toThrow(SyntaxError);
    expect(() => parseLargeJson(Buffer.concat([Buffer.from('{"a":"'), Buffer.alloc(65 << 20, "A")]))).toThrow(
      SyntaxError,
    );
  });
});
