import { describe, expect, it } from "vitest";
import { ToolAccess } from "../../../src/environment/tool-access.js";

describe("tool access", () => {
  it("looks up the role's rules first, then everybody's, and the rule that names the tool before the role's *", () => {
    const access = new ToolAccess();
    access.change({ role: "*", tools: "*" }, true);
    access.change({ role: "grader", tools: ["look"] }, false);
    expect([access.isDisabled("grader", "look"), access.isDisabled("grader", "touch")]).toEqual([false, true]);
    expect(access.isDisabled(undefined, "look")).toBe(true);
    access.change({ role: "grader", tools: "*" }, false);
    expect([access.isDisabled("grader", "touch"), access.isDisabled("other", "touch")]).toEqual([false, true]);
  });

  it("keeps a tool hidden by default hidden under * rules until a rule names it", () => {
    const access = new ToolAccess(["secret"]);
    access.change({ role: "*", tools: "*" }, false);
    access.change({ role: "grader", tools: "*" }, false);
    expect(access.isDisabled("grader", "secret")).toBe(true);
    access.change({ role: "grader", tools: ["secret"] }, false);
    expect([access.isDisabled("grader", "secret"), access.isDisabled("other", "secret")]).toEqual([false, true]);
  });

  it("overwrites a tool in every role's rules when everybody's rule for it is set", () => {
    const access = new ToolAccess();
    access.change({ role: "a", tools: ["t"] }, true);
    access.change({ role: "*", tools: ["t"] }, false);
    expect([access.isDisabled("a", "t"), access.isDisabled("b", "t")]).toEqual([false, false]);
    expect(access.change({ role: "a", tools: ["u"] }, true)).toEqual({ role: "a", disabled: ["u"], allowed: ["t"] });
  });

  it("clears all rules when everybody's * is set", () => {
    const access = new ToolAccess();
    access.change({ role: "a", tools: ["t"] }, true);
    expect(access.change({ role: "*", tools: "*" }, false)).toEqual({ role: "*", disabled: [], allowed: ["*"] });
    expect(access.isDisabled("a", "t")).toBe(false);
  });

  it("refuses rules without end", () => {
    const access = new ToolAccess();
    for (let n = 0; n < 1_000; n += 1) access.change({ role: `r${n}`, tools: ["t"] }, true);
    expect(access.change({ role: "one more", tools: ["t"] }, true)).toBeUndefined();
    expect(access.isDisabled("one more", "t")).toBe(false);
  });
});
