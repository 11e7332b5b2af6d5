import type { EnvFile } from "../bundles/env-file.js";
import type { ComputerSettings } from "../computer/settings.js";
import type { TokenHash } from "../http/tokens.js";
import type { SkillGetResult } from "../protocol/skill.js";

/**
 * What `agentenv up` has read and checked before it becomes the session user, for the server that it starts. It travels
 * where other programs of that user can't read it.
 */
export interface StartPlan {
  /** The env's folder, where the server can read it. */
  readonly folder: string;
  /** The same folder as its author knows it, for messages. */
  readonly source: string;
  readonly file: EnvFile;
  /** The class to serve, as `file.ts#Class`: a driver's relative to the package, an env's own relative to its folder. */
  readonly module: string;
  readonly settings: ComputerSettings;
  /** The skills that the env includes, whole: the session user may not be able to read where they lie. */
  readonly skills: readonly SkillGetResult[];
  readonly dataDir: string;
  readonly host: string;
  readonly port: number;
  /** `:N`, or undefined for a display of its own. */
  readonly display?: string;
  readonly tokens?: readonly TokenHash[];
  readonly allowedHosts: readonly string[];
  readonly environmentName: string;
  readonly log: { readonly level: string; readonly file?: string };
  /** Whether the one line that says it is ready is JSON. */
  readonly json: boolean;
  /** How a person here calls the command line. */
  readonly commandLine: string;
}
