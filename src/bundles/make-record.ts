import { z } from "zod";
import type { DriverInstaller } from "../computer/installer.js";
import { detectPlatform } from "../computer/platform.js";
import { COMPUTER_URN } from "../protocol/computer.js";
import type { JsonObject } from "../protocol/tool.js";
import { fileList, type Skill } from "../skills/skill.js";
import type { BundleEnv } from "./bundle.js";
import type { EnvRecord, PlatformNeeds } from "./env-record.js";

/** Where agent-env runs; what names no platform of its own runs there. */
const OWN_PLATFORMS = [
  { platform: "linux/amd64", display: [] },
  { platform: "linux/arm64", display: [] },
];

/** What is read of a card here. */
const CardOfComputer = z.looseObject({
  capabilities: z.looseObject({
    extensions: z.array(z.looseObject({ uri: z.string(), params: z.looseObject({}).nullish() })).nullish(),
  }),
});
/** `supports` of computer/v1. */
const Supports = z.array(
  z.looseObject({
    os: z.looseObject({ type: z.string(), display: z.array(z.string()).default([]) }),
    arch: z.array(z.string()).default(["amd64", "arm64"]),
  }),
);

export interface RecordParts {
  readonly env: BundleEnv;
  readonly contents: ReadonlyMap<string, Buffer>;
  /** As it was served. */
  readonly card: JsonObject;
  readonly skills: readonly Skill[];
  /** Of its driver, where that has one. */
  readonly installer: DriverInstaller | undefined;
}

/** This machine, as a record names platforms. */
export function ownPlatform(): string {
  const { os, arch } = detectPlatform(undefined);
  return `${os}/${arch}`;
}

/** The record of an env, and the platform of the machine that the card tells of. */
export function makeRecord({ env, contents, card, skills, installer }: RecordParts): {
  record: EnvRecord;
  machine: Record<string, string>;
} {
  const computer = paramsOfComputer(card);
  const { platform, ...params } = computer ?? {};
  const record: EnvRecord = {
    format: 1,
    env: env.id,
    files: fileList(contents),
    card: computer === undefined ? card : withParams(card, params),
    platforms: platformsOf(env, params.supports, installer),
    skills: skills.map(({ name, digest }) => ({ name, digest })).sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
  const machine = (platform ?? detectPlatform(undefined)) as Record<string, string>;
  return { record, machine };
}

function platformsOf(
  { file }: BundleEnv,
  supports: unknown,
  installer: DriverInstaller | undefined,
): Record<string, PlatformNeeds> {
  const declared = Supports.safeParse(supports).data ?? [];
  const platforms = declared.flatMap(({ os, arch }) =>
    arch.map((each) => ({ platform: `${os.type}/${each}`, display: os.display })),
  );
  const packages = [...(file.apps?.packages ?? [])].sort();
  return Object.fromEntries(
    (platforms.length === 0 ? OWN_PLATFORMS : platforms).map(({ platform, display }) => {
      const executable = installer?.programs[platform];
      const driver = {
        alias: file.driver ?? "",
        ...(installer === undefined ? {} : { version: installer.version }),
        ...(executable === undefined ? {} : { executable }),
      };
      return [platform, { display, packages, ...(file.driver === undefined ? {} : { driver }) }];
    }),
  );
}

function paramsOfComputer(card: JsonObject): JsonObject | undefined {
  const extensions = CardOfComputer.safeParse(card).data?.capabilities.extensions;
  return extensions?.find(({ uri }) => uri === COMPUTER_URN)?.params ?? undefined;
}

function withParams(card: JsonObject, params: JsonObject): JsonObject {
  const { capabilities, ...rest } = CardOfComputer.parse(card);
  const extensions = capabilities.extensions?.map((each) => (each.uri === COMPUTER_URN ? { ...each, params } : each));
  return { ...rest, capabilities: { ...capabilities, extensions } };
}
