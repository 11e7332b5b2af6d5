import { note } from "./output.js";

/** The codes that a shell gives to what a signal ended. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * Runs `work` with a signal that is aborted when this process is told to end, so that it can clean up first; the exit code is
 * then what a shell expects, and undefined is answered. A second time it ends at once, as it would without us.
 */
export async function unlessInterrupted<T>(cleaning: string, work: (signal: AbortSignal) => Promise<T>) {
  const interrupted = new AbortController();
  let by: keyof typeof SIGNALS | undefined;
  const stopListening = () => {
    for (const name of Object.keys(SIGNALS)) process.off(name, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals) => {
    stopListening();
    by = signal as keyof typeof SIGNALS;
    note(`interrupted: ${cleaning}`);
    interrupted.abort(new Error("interrupted"));
  };
  for (const name of Object.keys(SIGNALS)) process.on(name, onSignal);
  try {
    return await work(interrupted.signal);
  } catch (thrown) {
    if (by === undefined) throw thrown;
    process.exitCode = SIGNALS[by];
    return undefined;
  } finally {
    stopListening();
  }
}
