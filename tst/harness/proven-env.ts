import { hash } from "node:crypto";
import type { ProvenEnv } from "../../src/bundles/env-store.js";
import { fileList } from "../../src/skills/skill.js";
import { skillOf, skillText } from "./skill-folder.js";

/** An env as `agentenv put` has it when it was proven, without having started anything. */
export function provenEnv({ env = "office/mail", at = "2026-01-01T00:00:00.000Z" } = {}): ProvenEnv {
  const contents = new Map([
    ["env.toml", Buffer.from('type = "class"\nmodule = "env.js#Env"\n')],
    ["env.js", Buffer.from("export class Env {}\n")],
    ["copy.js", Buffer.from("export class Env {}\n")],
  ]);
  const skill = skillOf({ "SKILL.md": skillText("mailing"), "a.txt": "a" });
  const bytes = Buffer.alloc(9 * 1024 * 1024, "a driver's program");
  const executable = { size: bytes.length, sha256: hash("sha256", bytes, "hex") };
  const driver = { alias: "some-driver", version: "1", executable };
  return {
    record: {
      format: 1,
      env,
      files: fileList(contents),
      card: {
        name: "mail",
        protocolVersion: "1.0",
        url: "/agentenv",
        preferredTransport: "JSONRPC",
        additionalInterfaces: [],
        capabilities: { unknown: true },
      },
      platforms: { "linux/amd64": { display: ["x11"], packages: [], driver } },
      skills: [{ name: skill.name, digest: skill.digest }],
    },
    contents,
    skills: [skill],
    boot: {
      at,
      agentenv: "0.1.0",
      node: "v24.0.0",
      platform: { os: "linux", arch: "amd64" },
      ready_ms: 100,
      report: {
        level: "full",
        driver: "mail",
        passed: true,
        checks: [],
        extensions: {},
        url: "http://127.0.0.1:1",
        started_at: at,
        ms: 1,
      },
    },
    program: { ...executable, bytes },
  };
}
