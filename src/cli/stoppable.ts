const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Runs what starts programs or leaves files when it is cut off: a signal that asks this process to end aborts `signal`, and the
 * process ends of it once `run` has cleaned up. A second one ends it at once.
 */
export async function stoppable<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  let asked: NodeJS.Signals | undefined;
  const onSignal = (name: NodeJS.Signals) => {
    asked ??= name;
    forget();
    stop.abort(new Error(`ended by ${name}`));
  };
  const forget = () => {
    for (const name of SIGNALS) process.off(name, onSignal);
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  try {
    return await run(stop.signal);
  } finally {
    forget();
    if (asked !== undefined) process.kill(process.pid, asked);
  }
}
