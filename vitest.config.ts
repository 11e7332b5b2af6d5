import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { ClosingLineReporter } from "./tst/reporters/closing-line.js";

/** Sleeps for minutes, which costs nothing while the others run: it starts first, and has a worker more than they need. */
const SLEEPER = "tst/chaos/idle.test.ts";

class SleeperFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isSleeper = (file: TestSpecification) => Number(file.moduleId.endsWith(SLEEPER));
    return (await super.sort(files)).sort((a, b) => isSleeper(b) - isSleeper(a));
  }
}

/**
 * esbuild lowers the standard decorators to ES2022, the target that tsc builds for: vite stays at 7 until its successor's
 * transformer does the same.
 */
export default defineConfig({
  esbuild: { target: "es2022" },
  test: {
    reporters: ["default", new ClosingLineReporter()],
    allowOnly: false,
    passWithNoTests: false,
    teardownTimeout: 20_000,
    sequence: { sequencer: SleeperFirst },
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["tst/unit/**/*.test.ts"],
          testTimeout: 10_000,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "integration",
          include: ["tst/{integration,chaos,peers}/**/*.test.ts"],
          // Each file may run a desktop of its own; two of them fill a machine of two cores. The third is the sleeper's.
          maxWorkers: 3,
          testTimeout: 120_000,
          hookTimeout: 180_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
