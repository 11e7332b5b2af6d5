/**
 * Runs `run` with a signal that is aborted with `signal`, but not once `run` has settled: MCP's client keeps listening to the
 * signal of a request that was answered, and would cancel it afterwards.
 */
export async function withOwnSignal<T>(signal: AbortSignal, run: (own: AbortSignal) => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const own = new AbortController();
  const pass = () => own.abort(signal.reason);
  signal.addEventListener("abort", pass, { once: true });
  try {
    return await run(own.signal);
  } finally {
    signal.removeEventListener("abort", pass);
  }
}
