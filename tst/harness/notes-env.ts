import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { transformWithEsbuild } from "vite";

/** An env that is a class, as its author writes it, with a skill and a file of data. */
const SOURCE = `
import { agentSkill, Environment, tool } from "agent-env";
import { z } from "zod";

export class Notes extends Environment {
  @tool({ description: "Answers a note.", input: z.object({ number: z.int() }), annotations: { readOnlyHint: true } })
  read({ number }: { number: number }) {
    return "note " + number;
  }

  @agentSkill
  skill() {
    return ["noting", "---\\nname: noting\\ndescription: How to read notes.\\n---\\nRead them.\\n", { "a.txt": "a" }] as const;
  }
}
`;

/** A bundle `office` whose one env `notes` is a class, for as long as a test needs it. */
export class NotesBundle implements Disposable {
  readonly #parent = mkdtempSync(join(tmpdir(), "bundle-"));
  readonly folder = join(this.#parent, "office");
  readonly env = join(this.folder, "envs/notes");

  static async make(toml = ""): Promise<NotesBundle> {
    const bundle = new NotesBundle();
    const { code } = await transformWithEsbuild(SOURCE, "env.ts", {
      target: "es2022",
      tsconfigRaw: { compilerOptions: {} },
      sourcemap: false,
    });
    bundle.write("envs/notes/env.js", code);
    bundle.write("envs/notes/package.json", '{ "type": "module" }\n');
    bundle.write("envs/notes/env.toml", `type = "class"\nmodule = "env.js#Notes"\n${toml}`);
    return bundle;
  }

  /** Writes a file of the bundle. */
  write(path: string, text: string): void {
    const file = join(this.folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  [Symbol.dispose](): void {
    rmSync(this.#parent, { recursive: true, force: true });
  }
}
