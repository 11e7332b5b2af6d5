import { expect, it, onTestFinished } from "vitest";
import { NotSent } from "../../../../src/mcp/forward/link.js";
import { StdioLink } from "../../../../src/mcp/forward/stdio-link.js";

it("sends no more to a program that takes nothing than a bound, and says that it wasn't sent", () => {
  const link = new StdioLink({ command: ["sleep", "60"] }, { message() {}, lost() {}, closed() {} });
  onTestFinished(() => link.close());
  const message = "x".repeat(20 << 20);
  for (let sent = 0; sent < 4; sent += 1) link.send(message);
  expect(() => link.send(message)).toThrow(NotSent);
});
