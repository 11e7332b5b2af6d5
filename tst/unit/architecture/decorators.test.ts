import { expect, test } from "vitest";

function shout(method: (this: Greeter, name: string) => string, _context: ClassMethodDecoratorContext<Greeter>) {
  return function (this: Greeter, name: string): string {
    return method.call(this, name).toUpperCase();
  };
}

class Greeter {
  @shout
  greet(name: string): string {
    return `hello ${name}`;
  }
}

test("the test runner lowers standard decorators as the build does", () => {
  expect(new Greeter().greet("Ada")).toBe("HELLO ADA");
});
