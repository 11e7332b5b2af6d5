/** One thing whose time is taken; `run` is one call. */
export interface Contender {
  readonly name: string;
  /** What has to be there before each call, and isn't timed. */
  readonly before?: () => Promise<unknown>;
  run(): Promise<unknown>;
}

export interface Timing {
  readonly name: string;
  /** Milliseconds. */
  readonly p50: number;
  readonly p95: number;
  readonly count: number;
}

/** A line of the table: how one contender did against another in the same run. */
export interface Row extends Timing {
  /** p50 over the named contender's p50. */
  readonly ratio?: number;
  readonly against?: string;
  /** What the ratio is to be at most, or at least. */
  readonly goal?: { readonly most: number } | { readonly least: number };
}

/**
 * Times the contenders call by call in turns, so that whatever else the machine does hits them alike. Each round has an order
 * of its own: what one contender leaves behind for the next, such as a processor that is still busy, would else hit the same
 * one every time.
 */
export async function takeTurns(
  contenders: readonly Contender[],
  rounds: number,
  warmUp = 20,
): Promise<Map<string, Timing>> {
  const samples = new Map(contenders.map(({ name }) => [name, [] as number[]]));
  const orders = new Orders();
  for (let round = -warmUp; round < rounds; round += 1) {
    for (const contender of orders.next(contenders)) {
      await contender.before?.();
      const started = performance.now();
      await contender.run();
      if (round >= 0) samples.get(contender.name)?.push(performance.now() - started);
    }
  }
  return new Map([...samples].map(([name, times]) => [name, timing(name, times)]));
}

/** Orders that follow no pattern, the same ones in every run. */
export class Orders {
  #state = 1;

  next<T>(items: readonly T[]): T[] {
    const order = [...items];
    for (let last = order.length - 1; last > 0; last -= 1) {
      this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
      const other = Math.floor((this.#state / 2 ** 32) * (last + 1));
      [order[last], order[other]] = [order[other] as T, order[last] as T];
    }
    return order;
  }
}

/**
 * Calls a second of each contender, all of its callers at once, in slices that take turns: the median slice, as the time
 * that a call takes of a second. Programs that compile themselves as they run get the first slices to do so.
 */
export async function takeRateTurns(
  contenders: readonly { readonly name: string; readonly callers: readonly (() => Promise<unknown>)[] }[],
  slices: number,
  sliceMs: number,
  warmUp = 6,
): Promise<Map<string, Timing>> {
  const samples = new Map(contenders.map(({ name }) => [name, [] as number[]]));
  for (let slice = -warmUp; slice < slices; slice += 1) {
    for (let turn = 0; turn < contenders.length; turn += 1) {
      const contender = contenders[(turn + Math.max(0, slice)) % contenders.length] as (typeof contenders)[number];
      const started = performance.now();
      let done = 0;
      await Promise.all(
        contender.callers.map(async (call) => {
          for (; performance.now() - started < sliceMs; done += 1) await call();
        }),
      );
      if (slice >= 0) samples.get(contender.name)?.push((performance.now() - started) / done);
    }
  }
  return new Map([...samples].map(([name, times]) => [name, timing(name, times)]));
}

export function timing(name: string, times: readonly number[]): Timing {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
  return { name, p50: at(0.5), p95: at(0.95), count: sorted.length };
}

/** The row of `name`, compared with `against` where one is named. */
export function row(timings: Map<string, Timing>, name: string, against?: string, goal?: Row["goal"]): Row {
  const own = timings.get(name);
  if (own === undefined) throw new Error(`${name} wasn't timed`);
  const other = against === undefined ? undefined : timings.get(against);
  return {
    ...own,
    ...(other === undefined ? {} : { ratio: own.p50 / other.p50, against: other.name }),
    ...(goal === undefined ? {} : { goal }),
  };
}

/** The row of `name` in calls a second, compared with `against` where one is named. */
export function rateRow(timings: Map<string, Timing>, name: string, against?: string, goal?: Row["goal"]): Row {
  const { ratio, ...rest } = row(timings, name, against, goal);
  return {
    ...rest,
    name: `${name}: ${Math.round(1000 / rest.p50)} calls/s`,
    ...(ratio === undefined ? {} : { ratio: 1 / ratio }),
  };
}

/** Whether the row's ratio is what its goal says; undefined where there is nothing to reach. */
export function reached({ ratio, goal }: Row): boolean | undefined {
  if (ratio === undefined || goal === undefined) return undefined;
  return "most" in goal ? ratio <= goal.most : ratio >= goal.least;
}
