import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BundleEnv } from "../bundles/bundle.js";
import { driverInstaller } from "../bundles/driver-installer.js";
import type { ProvenEnv } from "../bundles/env-store.js";
import { makeRecord, ownPlatform } from "../bundles/make-record.js";
import { placeEnv } from "../bundles/place-env.js";
import { readProgram } from "../bundles/program-store.js";
import { EnvironmentClient, findExtension } from "../client/environment-client.js";
import type { PinnedProgram } from "../computer/installer.js";
import { SetupError } from "../errors.js";
import { ENVIRONMENT_CHECKS } from "../probe/checks/environment.js";
import { CHECKS } from "../probe/checks/list.js";
import type { CheckResult, ProbeReport } from "../probe/report.js";
import { runProbe } from "../probe/run.js";
import { CARD_PATH, Card } from "../protocol/card.js";
import { SKILL_URN } from "../protocol/skill.js";
import type { JsonObject } from "../protocol/tool.js";
import { fetchSkill } from "../skills/fetch-skill.js";
import type { Skill } from "../skills/skill.js";
import { agentenvVersion } from "./agentenv-version.js";
import { EnvProcess } from "./env-process.js";

export interface ProveOptions {
  readonly user?: string;
  readonly dataDir: string;
  /** The URL of the store, where the skills lie that it includes by digest. */
  readonly store: string;
  /** Skills that it serves beside its own. */
  readonly included: readonly Skill[];
  readonly signal: AbortSignal;
  /** Told what is done next. */
  readonly onStep: (step: string) => void;
  readonly onChecked: (done: number, total: number) => void;
}

/** An env whose probe didn't pass: what it found. */
export class NotProven extends SetupError {
  constructor(
    readonly env: string,
    readonly report: ProbeReport,
    readonly failed: readonly CheckResult[],
    message: string,
  ) {
    super(message, { hint: "nothing was stored" });
  }
}

/**
 * Starts an env from a copy of these files alone, waits until it is ready, and probes it: a computer at level full, an env that
 * is a class by what can be held against any. Answers what its record is made of. Throws NotProven, and a SetupError where it
 * doesn't start; in either case, and whenever it ends, nothing of it is left running.
 */
export async function proveEnv(
  env: BundleEnv,
  contents: ReadonlyMap<string, Buffer>,
  options: ProveOptions,
): Promise<ProvenEnv> {
  const { user, store, included, signal, onStep } = options;
  const installer = env.file.driver === undefined ? undefined : await driverInstaller(env.file.driver);
  const base = mkdtempSync(join(tmpdir(), "agentenv-put-"));
  try {
    const folder = placeEnv(base, "env", env.name, contents);
    onStep("starting");
    const start = {
      folder,
      source: env.folder,
      scratch: base,
      id: env.id,
      store,
      signal,
      ...(user === undefined ? {} : { user }),
    };
    await using running = await EnvProcess.start(start);
    const client = new EnvironmentClient(running.url, { signal });
    const card = (await client.get(CARD_PATH)).body as JsonObject;
    const hasSkill = findExtension(Card.parse(card), SKILL_URN) !== undefined;
    const skills = [...(hasSkill ? [await fetchSkill(running.url)] : []), ...included];
    onStep(`ready after ${(running.readyMs / 1000).toFixed(1)} s, probing`);
    const report = await probe(env, running.url, options);
    const { record, machine } = makeRecord({ env, contents, card, skills, installer });
    const pinned = installer?.programs[ownPlatform()];
    return {
      record,
      contents,
      skills,
      boot: {
        at: report.started_at,
        agentenv: agentenvVersion(),
        node: process.version,
        platform: machine,
        ready_ms: running.readyMs,
        report,
      },
      ...(installer === undefined || pinned === undefined
        ? {}
        : { program: await withBytes(pinned, installer.programFile(options.dataDir)) }),
    };
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

async function probe(env: BundleEnv, url: string, { signal, onChecked }: ProveOptions): Promise<ProbeReport> {
  const isComputer = env.file.type === "computer";
  const checks = isComputer ? CHECKS : ENVIRONMENT_CHECKS;
  let done = 0;
  const onResult = () => {
    done += 1;
    onChecked(done, checks.length);
  };
  const report = await runProbe(url, { level: isComputer ? "full" : "basic", checks, signal, onResult });
  const failed = report.checks.filter(({ status }) => status === "failed");
  if (failed.length > 0) {
    const what = failed.length === 1 ? "a check" : `${failed.length} checks`;
    throw new NotProven(env.id, report, failed, `${env.id} failed ${what} of the probe`);
  }
  // A probe that can't stage its window fails nothing, and has seen no input arrive.
  const full = new Set(checks.flatMap(({ level, name }) => (level === "full" ? [name] : [])));
  const unseen = report.checks.filter(({ name }) => full.has(name));
  if (isComputer && !unseen.some(({ status }) => status === "passed")) {
    throw new NotProven(env.id, report, unseen, `${env.id} can't be probed at level full`);
  }
  return report;
}

async function withBytes(pinned: PinnedProgram, file: string): Promise<PinnedProgram & { bytes: Buffer }> {
  return { ...pinned, bytes: await readProgram(pinned, file) };
}
