import { describe, expect, it } from "vitest";
import { UriTemplate } from "../../../src/environment/uri-template.js";

describe("a URI template", () => {
  it("gives a URI's parts decoded, and none for a URI of another form", () => {
    const template = new UriTemplate("orders://{customer}/{order_id}?x");
    expect(template.match("orders://Ada%2F1/7?x")).toEqual({ customer: "Ada/1", order_id: "7" });
    for (const uri of ["orders:///7?x", "orders://a/b/c?x", "orders://a/b", "orders://a/%E0%A4%A?x"]) {
      expect(template.match(uri)).toBeUndefined();
    }
    expect(new UriTemplate("f:///{+path}").match("f:///a/b")).toEqual({ path: "a/b" });
    expect(template.expand({ customer: "Ada/1", order_id: "7" })).toBe("orders://Ada%2F1/7?x");
  });

  it("knows whether some URI is also one of another template", () => {
    const overlap = (a: string, b: string) => new UriTemplate(a).overlaps(new UriTemplate(b));
    expect(overlap("a://{x}", "a://{y}")).toBe(true);
    expect(overlap("a://start-{x}", "a://{y}-end")).toBe(true);
    expect(overlap("a://{x}", "a://{y}/{z}")).toBe(false);
    expect(overlap("a://{x}", "b://{x}")).toBe(false);
    expect(overlap("a://{+x}", "a://{y}/{z}")).toBe(true);
    expect(overlap("a://x{y}", "a://{z}/x")).toBe(false);
  });

  it("refuses expressions that it doesn't know", () => {
    for (const bad of ["a://{?q}", "a://{x*}", "a://{x}{x}", "a://x", "a://{x"]) {
      expect(() => new UriTemplate(bad)).toThrow(/URI template/);
    }
  });
});
