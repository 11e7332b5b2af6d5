import { hash } from "node:crypto";
import { z } from "zod";
import { ProbeReport } from "../probe/report.js";
import { canonicalJson } from "../protocol/canonical-json.js";
import { Card } from "../protocol/card.js";
import { SkillFile } from "../skills/skill.js";
import { ENV_NAME } from "./bundle.js";
import { MAX_ENV_FILES } from "./env-content.js";

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** What an env needs on one platform. */
export const PlatformNeeds = z.strictObject({
  /** The displays that the driver is made for, such as `x11`; empty for a class. */
  display: z.array(z.string()),
  /** Debian packages, as `[apps] packages` names them. */
  packages: z.array(z.string()),
  driver: z
    .strictObject({
      alias: z.string(),
      /** Of the driver's program, where it has one that is pinned. */
      version: z.string().optional(),
      /** What is run, as it is pinned for this platform. */
      executable: z.strictObject({ size: z.int().positive(), sha256: Sha256 }).optional(),
    })
    .optional(),
});
export type PlatformNeeds = z.infer<typeof PlatformNeeds>;

/**
 * What an env is, for good: its id is the sha256 of this value's canonical JSON. It holds nothing of the machine or of the
 * time at which it was proven, so the same content is the same record wherever and however often it is put; a boot that
 * proved it is kept beside it, under the record. Another version of agent-env may serve other tools, and so another card:
 * that is another record.
 */
export const EnvRecord = z.strictObject({
  format: z.literal(1),
  /** The env in its bundle: `<bundle>/<env>` or `<env>`. */
  env: z
    .string()
    .refine((id) => id.split("/").length <= 2 && id.split("/").every((name) => ENV_NAME.test(name)), "is no env's id"),
  /** Every file of the env's folder, sorted by path. */
  files: z.array(SkillFile).min(1).max(MAX_ENV_FILES),
  /** The card as it was served, without the platform that computer/v1 tells of the machine. */
  card: z.record(z.string(), z.unknown()).refine((card) => Card.safeParse(card).success, "is no card"),
  /** By `<os>/<arch>`, such as `linux/amd64`. */
  platforms: z.record(z.string().regex(/^[a-z0-9]+\/[a-z0-9]+$/), PlatformNeeds),
  /** The skills that it serves, each stored as a bundle of its own. */
  skills: z.array(z.strictObject({ name: z.string(), digest: z.string().regex(/^sha256:[0-9a-f]{64}$/) })),
});
export type EnvRecord = z.infer<typeof EnvRecord>;

/** A start of an env, seen ready, that a probe went well on: `metadata.validated_boot` of its record. */
export const ValidatedBoot = z.strictObject({
  /** When the probe began: ISO 8601, UTC. */
  at: z.iso.datetime(),
  /** The version of agent-env. */
  agentenv: z.string(),
  node: z.string(),
  /** The machine: os, arch, distribution, version, display. */
  platform: z.record(z.string(), z.string()),
  /** From the start of its process until it was ready, in milliseconds. */
  ready_ms: z.int().min(0),
  report: ProbeReport,
});
export type ValidatedBoot = z.infer<typeof ValidatedBoot>;

/** The text that a record's id is made of, and that a store keeps of it. */
export function recordText(record: EnvRecord): string {
  return canonicalJson(record);
}

/** `sha256:<hex>`. */
export function idOf(record: EnvRecord): string {
  return `sha256:${hash("sha256", recordText(record), "hex")}`;
}
