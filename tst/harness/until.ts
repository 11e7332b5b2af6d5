/** Waits until something holds, looking again every few milliseconds. What it last saw is in the error when it doesn't come. */
export async function until<T>(
  look: () => T | Promise<T>,
  holds: (seen: T) => boolean = Boolean,
  { ms = 5_000, every = 10, what = "it" }: { ms?: number; every?: number; what?: string } = {},
): Promise<T> {
  const deadline = performance.now() + ms;
  for (;;) {
    const seen = await look();
    if (holds(seen)) return seen;
    if (performance.now() > deadline) {
      throw new Error(`${what} didn't come to hold within ${ms} ms; last seen: ${JSON.stringify(seen)?.slice(0, 500)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, every));
  }
}
