import { existsSync, lstatSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { z } from "zod";
import { SetupError } from "../errors.js";
import { copyFile, copyTree, isWithin, placeFile, type TreeEntry, walkTree } from "./trees.js";

/** What npm writes about what it installed. */
const RECORD = join("node_modules", ".package-lock.json");
/** Its entry of a package that lies in no other one. The name can't lead out of `node_modules`. */
const OUTERMOST = /^node_modules\/((?:@[\w.~-]+\/)?[\w~-][\w.~-]*)$/;
/** The program's own package. */
export const PROGRAM = "agent-env";
/** What only compilers and debuggers read. */
export const NOT_RUN = /\.(d\.[cm]?ts|map|tsbuildinfo)$/;
const MAX_FILES = 60_000;
const MAX_BYTES = 1024 * 1024 * 1024;
const EVERYTHING = ".";

const InstallRecord = z.object({
  packages: z.record(
    z.string(),
    z.object({ dev: z.boolean().optional(), link: z.boolean().optional(), integrity: z.string().optional() }),
  ),
});

/** What one folder's `node_modules` holds that is needed to run, and where. */
export interface Packages {
  /** The folder whose `node_modules` it is. */
  readonly base: string;
  /** Changes when they do. */
  readonly state: readonly unknown[];
  readonly trees: readonly PackageTree[];
}

interface PackageTree {
  /** Below `node_modules`; `.` is all of it. */
  readonly name: string;
  readonly source: string;
  /** Names that are left out. */
  readonly skip: readonly string[];
  /** npm has a digest of it: it is replaced and never edited. */
  readonly isFixed: boolean;
}

/**
 * The packages that the program needs: those of its own folder, or of the one around it, where it is a package itself and one
 * of them.
 */
export function programPackages(programDir: string): Packages {
  for (let base = programDir; ; base = dirname(base)) {
    // npm leaves no record where it installed globally: the program's packages lie inside of it.
    const isGlobal = base === programDir && basename(dirname(base)) === "node_modules";
    if (existsSync(join(base, RECORD)) || (isGlobal && existsSync(join(base, "node_modules")))) {
      const isOwn = base === programDir;
      return packagesIn(base, { programDir, takesProgram: !isOwn, takesLinks: isOwn });
    }
    if (base === dirname(base)) {
      throw new SetupError(
        `npm did not install the packages of ${programDir}, so they can't be copied for another user`,
        {
          hint: "install them with npm ci, or start as the session user itself",
        },
      );
    }
  }
}

/**
 * The folder whose packages the modules of an env find: its own, or one around it up to the first that is a package, unless
 * everybody may write there.
 */
export function packagesFolder(folder: string): string | undefined {
  for (let base = folder; ; base = dirname(base)) {
    const isSafe = base === folder || (lstatSync(base).mode & 0o002) === 0;
    if (isSafe && existsSync(join(base, "node_modules"))) return base;
    if (base === dirname(base) || existsSync(join(base, "package.json"))) return undefined;
  }
}

/** The packages of an env, without the program, of which there is one for all. */
export function envPackages(base: string, programDir: string): Packages {
  return packagesIn(base, { programDir, takesProgram: false, takesLinks: false });
}

interface Choice {
  readonly programDir: string;
  /** Whether the program's own package is among them. */
  readonly takesProgram: boolean;
  /** Whether a symbolic link in the place of a package is followed: it may lead to what only root may read. */
  readonly takesLinks: boolean;
}

function packagesIn(base: string, choice: Choice): Packages {
  const record = readRecord(base);
  if (record === undefined) {
    const tree = treeOf(base, EVERYTHING, choice, choice.takesProgram ? [] : [PROGRAM]);
    return { base, state: [statesOf(tree)], trees: [tree] };
  }
  const { packages } = record;
  // Installed for development alone, what it needs is marked so too.
  const takesDev = choice.takesProgram && packages[relative(base, choice.programDir)]?.dev === true;
  const state: unknown[] = [record.text];
  const trees: PackageTree[] = [];
  for (const [path, { dev, link, integrity }] of Object.entries(packages)) {
    const name = OUTERMOST.exec(path)?.[1];
    if (name === undefined || (dev && !takesDev) || !existsSync(join(base, path))) continue;
    const isProgram = name === PROGRAM || realpathSync(join(base, path)) === realpathSync(choice.programDir);
    if (isProgram ? !choice.takesProgram : holdsNode(join(base, path))) continue;
    const isFixed = integrity !== undefined && !link && !isProgram;
    const tree = link ? linkedTree(base, name) : { ...treeOf(base, name, choice), isFixed };
    trees.push(tree);
    if (!isFixed) state.push(name, statesOf(tree));
  }
  if (existsSync(join(base, "node_modules", ".bin"))) trees.push(treeOf(base, ".bin", choice));
  return { base, state, trees };
}

/** Node itself may come as a package. It is copied on its own. */
function holdsNode(folder: string): boolean {
  return isWithin(realpathSync(process.execPath), realpathSync(folder));
}

function readRecord(base: string): (z.infer<typeof InstallRecord> & { text: string }) | undefined {
  const file = join(base, RECORD);
  if (!existsSync(file)) return undefined;
  const text = readFileSync(file, "utf8");
  try {
    return { text, ...InstallRecord.parse(JSON.parse(text)) };
  } catch (thrown) {
    throw new SetupError(`${file} is not what npm writes`, {
      hint: "install the packages again with npm ci",
      cause: thrown,
    });
  }
}

function treeOf(base: string, name: string, { takesLinks }: Choice, skip: readonly string[] = []): PackageTree {
  const source = join(base, "node_modules", name);
  if (!takesLinks && realpathSync(source) !== join(realpathSync(base), "node_modules", name)) {
    throw new SetupError(`${source} is a symbolic link, which is not followed for another user`, {
      hint: "install the packages again with npm ci, or start as the session user itself",
    });
  }
  return { name, source, skip, isFixed: false };
}

/** A package of the same project, such as one of its workspaces. */
function linkedTree(base: string, name: string): PackageTree {
  const link = join(base, "node_modules", name);
  const source = realpathSync(link);
  if (source === realpathSync(base) || !isWithin(source, realpathSync(base))) {
    throw new SetupError(`${link} is a link out of ${base}, which is not followed for another user`, {
      hint: "install a copy of that package: npm install --install-links",
    });
  }
  return { name, source, skip: [".git"], isFixed: false };
}

function entriesOf({ source, skip }: PackageTree): TreeEntry[] {
  return walkTree(source, ".", { skip, maxEntries: MAX_FILES });
}

function statesOf(tree: PackageTree): unknown[] {
  return entriesOf(tree).map((entry) => Object.values(entry));
}

/** Copies packages to `target`'s `node_modules`; hard links where that is safe. */
export function copyPackages({ base, trees }: Packages, target: string, { types }: { types: boolean }): void {
  let [files, bytes] = [0, 0];
  for (const tree of trees) {
    const entries = entriesOf(tree).filter(({ path }) => types || !NOT_RUN.test(path));
    files += entries.length;
    bytes += entries.reduce((sum, { size }) => sum + size, 0);
    if (files > MAX_FILES || bytes > MAX_BYTES) {
      throw new SetupError(`${join(base, "node_modules")} is too large to be copied for the session user`, {
        hint: `keep it below ${MAX_FILES} files and ${MAX_BYTES / 1024 / 1024} MiB, without what is for development alone, or start as the session user itself`,
      });
    }
    copyTree(tree.source, entries, join(target, "node_modules", tree.name), tree.isFixed ? placeFile : copyFile);
  }
}
