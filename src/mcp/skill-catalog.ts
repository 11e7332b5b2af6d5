import { extname } from "node:path";
import type { ResourceContent, ResourceDefinition } from "../environment/resource.js";
import type { RawJson } from "../protocol/raw-json.js";
import { DIRECTORY_TYPE, type SkillEntry } from "../protocol/skill.js";
import { SKILL_FILE, type Skill, type SkillFile } from "../skills/skill.js";
import { asBytes } from "./kept-json.js";

/** What files of skills are, by the end of their name; other text is `text/plain`. Source: IANA's registry. */
const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".csv": "text/csv",
  ".gif": "image/gif",
  ".htm": "text/html",
  ".html": "text/html",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".js": "text/javascript",
  ".json": "application/json",
  ".md": "text/markdown",
  ".mjs": "text/javascript",
  ".pdf": "application/pdf",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".toml": "application/toml",
  ".webp": "image/webp",
  ".xml": "application/xml",
  ".yaml": "application/yaml",
  ".yml": "application/yaml",
};

/** A file of a skill. */
interface Held {
  readonly mimeType: string;
  readonly bytes: Buffer;
}

/** Several skills as MCP serves them, made ready once. Source: SEP-2640. */
export class SkillCatalog {
  /** The entries of `skills/list`, as JSON text. */
  readonly entries: readonly string[];
  /** Every file, as `resources/list` shows it: each skill's SKILL.md first. */
  readonly resources: readonly ResourceDefinition[];
  readonly #files = new Map<string, Held>();
  readonly #skills = new Map<string, RawJson>();
  readonly #directories = new Map<string, RawJson>();

  constructor(skills: readonly Skill[]) {
    this.entries = skills.map((skill) => {
      const entry = JSON.stringify(entryOf(skill));
      this.#skills.set(uriOf(skill, SKILL_FILE), asBytes(`{"skill":${entry}}`));
      return entry;
    });
    this.resources = skills.flatMap((skill) => {
      const definitions = skill.files.map((file) => {
        const bytes = skill.bytes(file.path) ?? Buffer.alloc(0);
        const mimeType = typeOf(file.path, bytes);
        const definition = definitionOf(skill, file, mimeType);
        this.#files.set(definition.uri, { mimeType, bytes });
        return definition;
      });
      for (const [uri, children] of directoriesOf(rootOf(skill), definitions)) {
        this.#directories.set(uri, asBytes(JSON.stringify({ resources: children })));
      }
      return definitions.sort((a, b) => Number(isSkillMd(skill, b)) - Number(isSkillMd(skill, a)));
    });
  }

  get empty(): boolean {
    return this.entries.length === 0;
  }

  /** The answer of `skills/get`, undefined for none of ours. */
  skill(uri: string): RawJson | undefined {
    return this.#skills.get(uri);
  }

  /** The answer of `resources/directory/read`, undefined for no folder of ours. */
  directory(uri: string): RawJson | undefined {
    return this.#directories.get(uri);
  }

  /** The content of a file, undefined for none of ours: UTF-8 as text, which has the digest's bytes, the rest in base64. */
  read(uri: string): ResourceContent | undefined {
    const held = this.#files.get(uri);
    if (held === undefined) return undefined;
    const { mimeType, bytes } = held;
    const text = textOf(bytes);
    return { uri, mimeType, ...(text === undefined ? { blob: bytes.toString("base64") } : { text }) };
  }
}

/**
 * The folders below and with `root`, each with what is directly in it. The URIs are of files, given as resources; a folder has
 * no slash at its end.
 */
export function directoriesOf(
  root: string,
  files: readonly ResourceDefinition[],
): Map<string, readonly ResourceDefinition[]> {
  const found = new Map<string, Map<string, ResourceDefinition>>([[root, new Map()]]);
  for (const file of files) {
    const segments = file.uri.slice(root.length + 1).split("/");
    let folder = root;
    for (const segment of segments.slice(0, -1)) {
      const uri = `${folder}/${segment}`;
      found.get(folder)?.set(uri, { uri, name: decodeURIComponent(segment), mimeType: DIRECTORY_TYPE });
      if (!found.has(uri)) found.set(uri, new Map());
      folder = uri;
    }
    found.get(folder)?.set(file.uri, file);
  }
  return new Map([...found].map(([uri, children]) => [uri, [...children.values()]]));
}

function entryOf(skill: Skill): SkillEntry {
  return {
    uri: uriOf(skill, SKILL_FILE),
    frontmatter: skill.frontmatter,
    resources: skill.files.map(({ path, size, sha256 }) => ({
      uri: uriOf(skill, path),
      digest: `sha256:${sha256}`,
      size,
    })),
  };
}

/** Of SKILL.md the name and the description are the skill's own. Source: SEP-2640, "Resource Metadata". */
function definitionOf(skill: Skill, { path, size }: SkillFile, mimeType: string): ResourceDefinition {
  const isMain = path === SKILL_FILE;
  return {
    uri: uriOf(skill, path),
    name: isMain ? skill.name : path,
    ...(isMain ? { description: skill.description } : {}),
    mimeType,
    size,
  };
}

function typeOf(path: string, bytes: Buffer): string {
  return (
    TYPES[extname(path).toLowerCase()] ?? (textOf(bytes) === undefined ? "application/octet-stream" : "text/plain")
  );
}

/** The bytes as text, undefined where other bytes would come of the text. */
function textOf(bytes: Buffer): string | undefined {
  const text = bytes.toString("utf8");
  return Buffer.from(text).equals(bytes) ? text : undefined;
}

function isSkillMd(skill: Skill, { uri }: ResourceDefinition): boolean {
  return uri === uriOf(skill, SKILL_FILE);
}

/** The URI of a skill's folder. */
export function rootOf({ name }: Pick<Skill, "name">): string {
  return `skill://${name}`;
}

function uriOf(skill: Skill, path: string): string {
  return `${rootOf(skill)}/${path.split("/").map(encodeURIComponent).join("/")}`;
}
