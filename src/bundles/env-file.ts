import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, TomlError } from "smol-toml";
import { z } from "zod";
import { closest } from "../closest.js";
import { ToolNarrowing } from "../environment/tool-narrowing.js";
import { messageOf, SetupError } from "../errors.js";
import { kindOf } from "./kind-of.js";

const side = z.int().min(320).max(8192);

/** `env.toml`, as an env author writes it. */
export const EnvFile = z
  .strictObject({
    type: z.enum(["computer", "class"]),
    /** For a computer: the alias of its driver. */
    driver: z.string().min(1).optional(),
    /** For a class: `file.ts#Class`, relative to the folder. */
    module: z
      .string()
      .regex(/^[^#]+#[A-Za-z_$][\w$]*$/, 'has the form "file.ts#Class"')
      .optional(),
    name: z.string().min(1).max(200).optional(),
    /** The session user, unless `--user` names one. */
    user: z.string().min(1).optional(),
    display: z.strictObject({ width: side, height: side }).optional(),
    apps: z
      .strictObject({
        /** Command lines, as a shell reads them, that are started once the desktop is up. */
        start: z.array(z.string().min(1)).default([]),
        /** Debian packages that have to be installed. */
        packages: z.array(z.string().regex(/^[a-z0-9][a-z0-9.+-]*$/, "is a Debian package name")).default([]),
      })
      .optional(),
    tools: ToolNarrowing.optional(),
    /** Skills that are served beside the env's own: folders, relative to the env's, or digests `sha256:…` of stored ones. */
    skills: z.strictObject({ include: z.array(z.string().min(1)).max(64).default([]) }).optional(),
    /** Path in the session user's home → file of the env's folder; staged with data/add at the start. */
    data: z.strictObject({ files: z.record(z.string(), z.string()) }).optional(),
    session: z
      .strictObject({
        /** After this many seconds without a request an MCP session is closed. */
        idle_s: z
          .number()
          .min(1)
          .max(86_400 * 7)
          .optional(),
        /** How many MCP sessions may be open at once. */
        max: z.int().min(1).max(100_000).optional(),
      })
      .optional(),
    /** AGENTENV_COMPUTER_SETTINGS; what they may hold is the computer's to say. */
    settings: z.record(z.string(), z.unknown()).optional(),
  })
  .superRefine((file, context) => {
    const needed = file.type === "computer" ? "driver" : "module";
    const foreign = file.type === "computer" ? "module" : "driver";
    if (file[needed] === undefined) {
      context.addIssue({ code: "custom", path: [needed], message: `is needed for type = "${file.type}"` });
    }
    if (file[foreign] !== undefined) {
      context.addIssue({ code: "custom", path: [foreign], message: `is not for type = "${file.type}"` });
    }
  });
export type EnvFile = z.infer<typeof EnvFile>;

/** Reads and checks a folder's `env.toml`. Whatever is wrong with it is a SetupError naming the file, the key and what is allowed. */
export function readEnvFile(folder: string): EnvFile {
  const file = join(folder, "env.toml");
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (thrown) {
    throw new SetupError(whyUnreadable(folder, thrown), {
      hint:
        kindOf(join(folder, "envs")) === "folder"
          ? `name one of its envs: ${join(folder, "envs")}/…`
          : "name a folder with an env.toml, such as bundles/desk",
      cause: thrown,
    });
  }
  let toml: unknown;
  try {
    toml = parse(text);
  } catch (thrown) {
    if (!(thrown instanceof TomlError)) throw thrown;
    throw new SetupError(`${file}, line ${thrown.line}: it is not TOML: ${thrown.message.split("\n", 1)[0]}`, {
      hint: "see https://toml.io for how a value is written",
      cause: thrown,
    });
  }
  const parsed = EnvFile.safeParse(toml);
  if (!parsed.success) {
    throw new SetupError(parsed.error.issues.map((issue) => `${file}: ${describeIssue(issue, toml)}`).join("\n"), {
      hint: "bundles/desk/env.toml is an example",
    });
  }
  return parsed.data;
}

function whyUnreadable(folder: string, thrown: unknown): string {
  const [file, kind] = [join(folder, "env.toml"), kindOf(folder)];
  if (kind === undefined) return `there is no folder ${folder}`;
  if (kind !== "folder") return `${folder} is a ${kind}, and no folder with an env.toml`;
  const there = kindOf(file);
  if (there === undefined) return `${folder} has no env.toml`;
  return there === "file" ? `${file} can't be read: ${messageOf(thrown)}` : `${file} is a ${there}, and no file`;
}

function describeIssue(issue: z.core.$ZodIssue, toml: unknown): string {
  const key = issue.path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    const allowed = allowedKeys(issue.path);
    return issue.keys
      .map((unknown) => {
        const full = key === "" ? unknown : `${key}.${unknown}`;
        const near = closest(unknown, allowed);
        return `unknown key "${full}"${near === undefined ? "" : `, did you mean "${near}"?`}; allowed: ${allowed.join(", ")}`;
      })
      .join(`; `);
  }
  const value = issue.path.reduce<unknown>(
    (at, part) => (at as Record<PropertyKey, unknown> | undefined)?.[part],
    toml,
  );
  return `${key}: ${issue.message}${value === undefined ? "" : ` (it is ${JSON.stringify(value)})`}`;
}

function allowedKeys(path: readonly PropertyKey[]): string[] {
  let schema: z.ZodType = EnvFile;
  for (const part of path) {
    while (schema instanceof z.ZodOptional) schema = schema.unwrap() as z.ZodType;
    if (schema instanceof z.ZodObject) schema = schema.shape[String(part)] as z.ZodType;
    else if (schema instanceof z.ZodRecord) schema = schema.valueType as z.ZodType;
  }
  while (schema instanceof z.ZodOptional) schema = schema.unwrap() as z.ZodType;
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}
