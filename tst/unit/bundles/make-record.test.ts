import { describe, expect, it } from "vitest";
import type { BundleEnv } from "../../../src/bundles/bundle.js";
import { EnvRecord, idOf } from "../../../src/bundles/env-record.js";
import { makeRecord } from "../../../src/bundles/make-record.js";
import type { DriverInstaller } from "../../../src/computer/installer.js";
import { COMPUTER_URN } from "../../../src/protocol/computer.js";
import { skillOf, skillText } from "../../harness/skill-folder.js";

const card = (arch: string, supports: unknown[] = []) => ({
  name: "desk",
  protocolVersion: "1.0",
  url: "/agentenv",
  preferredTransport: "JSONRPC",
  additionalInterfaces: [],
  capabilities: {
    extensions: [
      { uri: "urn:x", description: "kept", unknown: 1 },
      { uri: COMPUTER_URN, params: { buttons: ["left"], supports, platform: { os: "linux", arch } } },
    ],
    tools: [],
  },
});

const SUPPORTS = [{ os: { type: "linux", display: ["x11"] }, arch: ["amd64", "arm64"] }];
const executable = { size: 3, sha256: "a".repeat(64) };
const installer = { version: "1.2", programs: { "linux/amd64": executable } } as unknown as DriverInstaller;

const env: BundleEnv = {
  id: "office/desk",
  name: "desk",
  folder: "/nowhere",
  file: { type: "computer", driver: "some", apps: { start: [], packages: ["b", "a"] } },
};
const contents = new Map([["env.toml", Buffer.from("x")]]);
const skills = ["b-skill", "a-skill"].map((name) => skillOf({ "SKILL.md": skillText(name) }));
const make = (more: object = {}) =>
  makeRecord({ env, contents, card: card("amd64", SUPPORTS), skills, installer, ...more });

describe("a record that is made", () => {
  it("holds nothing of the machine that it was proven on, and keeps the rest of the card as it was served", () => {
    const [here, there] = [make(), make({ card: card("arm64", SUPPORTS) })];
    expect(here.machine).toEqual({ os: "linux", arch: "amd64" });
    expect(there.machine).toEqual({ os: "linux", arch: "arm64" });
    expect(idOf(here.record)).toBe(idOf(there.record));
    const [other, computer] = (here.record.card as ReturnType<typeof card>).capabilities.extensions;
    expect(other).toEqual({ uri: "urn:x", description: "kept", unknown: 1 });
    expect(computer?.params).toEqual({ buttons: ["left"], supports: SUPPORTS });
    expect(EnvRecord.parse(here.record)).toEqual(here.record);
  });

  it("says for each platform that the driver is made for what it needs there, and what is pinned", () => {
    const driver = { alias: "some", version: "1.2" };
    expect(make().record.platforms).toEqual({
      "linux/amd64": { display: ["x11"], packages: ["a", "b"], driver: { ...driver, executable } },
      "linux/arm64": { display: ["x11"], packages: ["a", "b"], driver },
    });
    const file = { type: "class" as const, module: "a.js#A" };
    const ofClass = make({ env: { ...env, file }, card: { ...card("amd64"), capabilities: {} }, installer: undefined });
    expect(ofClass.record.platforms).toEqual({
      "linux/amd64": { display: [], packages: [] },
      "linux/arm64": { display: [], packages: [] },
    });
  });

  it("names its skills in the order of their names, however they were served", () => {
    const names = ({ record }: { record: EnvRecord }) => record.skills.map(({ name }) => name);
    expect(names(make())).toEqual(["a-skill", "b-skill"]);
    expect(idOf(make().record)).toBe(idOf(make({ skills: [...skills].reverse() }).record));
  });
});
