import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { hostArch, pinFile, pinText, readPin } from "../../../../drivers/cua-driver/pin.js";
import { digestTool, pinDifferences, servedDifferences } from "../../../../drivers/cua-driver/pin-differences.js";
import { type Pin, pinJsonSchema } from "../../../../drivers/cua-driver/pin-schema.js";
import { SetupError } from "../../../../src/errors.js";

test("the project's mcp.json is a pin, in the text that the generator writes", async () => {
  const pin = await readPin();
  expect(pinText(pin)).toBe(await readFile(pinFile(), "utf8"));
  expect(pin.tools).toHaveLength(66);
  expect(pin.tools.filter(({ parts }) => "outputSchema" in parts)).toHaveLength(39);
  expect(pin.resources).toHaveLength(11);
  expect(pin.skills).toHaveLength(1);
  expect(pin.skillPack).toHaveLength(9);
});

test("no sentence of upstream's is in mcp.json: its texts are names, URIs, types, digests and versions", async () => {
  const sentence = /\w+ \w+/;
  const texts = (value: unknown): string[] =>
    typeof value === "string" ? [value] : typeof value === "object" && value ? Object.values(value).flatMap(texts) : [];
  expect(texts(JSON.parse(await readFile(pinFile(), "utf8"))).filter((text) => sentence.test(text))).toEqual([]);
});

test("the JSON Schema of the pin names each of its keys", async () => {
  const schema = pinJsonSchema() as { properties: object };
  expect(Object.keys(schema.properties).sort()).toEqual(Object.keys(await readPin()).sort());
});

test.each([
  ["no JSON", () => "{"],
  ["a digest that is none", (text: string) => text.replace(/"sha256": "\w+"/, '"sha256": "abc"')],
  ["a key that it has no place for", (text: string) => text.replace("{", '{"extra": 1,')],
])("a pin with %s is a SetupError that names the file", async (_, damage) => {
  const folder = await mkdtemp(join(tmpdir(), "pin-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "mcp.json");
  await writeFile(file, damage(await readFile(pinFile(), "utf8")));
  await expect(readPin(file)).rejects.toThrow(SetupError);
  await expect(readPin(file)).rejects.toThrow(file);
});

test("an architecture without a wheel is a SetupError", () => {
  expect(hostArch("x64", "linux")).toBe("amd64");
  expect(hostArch("arm64", "linux")).toBe("arm64");
  expect(() => hostArch("riscv64", "linux")).toThrow(SetupError);
  expect(() => hostArch("arm64", "darwin")).toThrow(SetupError);
});

test("a tool's digest doesn't depend on the order of its keys, and its parts say where a change is", () => {
  const tool = { name: "click", description: "Clicks.", inputSchema: { required: ["x"] }, annotations: {} };
  const same = { annotations: {}, inputSchema: { required: ["x"] }, description: "Clicks.", name: "click" };
  expect(digestTool(tool)).toEqual(digestTool(same));
  expect(digestTool(tool)).toMatchObject({ name: "click", required: ["x"], annotations: {} });
  expect(Object.keys(digestTool(tool).parts)).toEqual(["description", "inputSchema"]);
});

test("every kind of difference from the pin is a line that says what and where", async () => {
  const pin = await readPin();
  const now: Pin = structuredClone(pin);
  const [first, second, third] = now.tools;
  if (!first || !second || !third) throw new Error("the pin has no tools");
  first.parts.description = "0".repeat(64);
  first.sha256 = "0".repeat(64);
  second.annotations.readOnlyHint = "new";
  third.required.push("extra");
  const removed = now.tools.splice(3, 1)[0]?.name;
  now.tools.push({ ...first, name: "brand_new" });
  now.instructions.sha256 = "0".repeat(64);
  now.listExtras.extra = "0".repeat(64);
  const resource = now.resources[0];
  if (resource) resource.size += 1;
  const file = now.skills[0]?.files[0];
  if (file) file.sha256 = "0".repeat(64);
  now.skillPack.pop();
  expect(servedDifferences(pin, now)).toEqual([
    "instructions: changed",
    "list key extra: added",
    `tool ${first.name}: changed (description)`,
    `tool ${second.name}: changed (annotations)`,
    `tool ${third.name}: changed (required arguments)`,
    `tool ${removed}: missing`,
    "tool brand_new: added",
    `resource ${resource?.uri}: changed`,
    `skill ${now.skills[0]?.uri}: changed (file ${file?.uri}: changed)`,
    `skill file ${pin.skillPack.at(-1)?.path}: missing`,
  ]);
  expect(servedDifferences(pin, structuredClone(pin))).toEqual([]);
});

test("moving to another pin says the versions and digests that change", async () => {
  const pin = await readPin();
  const now: Pin = structuredClone(pin);
  now.driver.version = "0.38.0";
  now.arches.arm64.wheel.sha256 = "1".repeat(64);
  expect(pinDifferences(pin, now)).toEqual([
    "version: 0.37.0 -> 0.38.0",
    `arm64 wheel: ${pin.arches.arm64.wheel.sha256} -> ${"1".repeat(64)}`,
  ]);
  expect(pinDifferences(pin, pin)).toEqual([]);
});
