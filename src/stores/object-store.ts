import { SetupError } from "../errors.js";

/** Thrown by `get` for an object that is not what was put, as the store's own checksum of it says each time it is asked. */
export class ObjectDamaged extends SetupError {}

/** What a store tells of an object without its bytes. */
export interface ObjectInfo {
  readonly key: string;
  readonly size: number;
  /** When it was last put, by the store's clock. */
  readonly modified: Date;
}

export interface ObjectPage {
  /** In the order of their keys. */
  readonly objects: readonly ObjectInfo[];
  /** Passed to `list` for the following page; absent on the last one. */
  readonly next?: string;
}

/**
 * Where bundles are kept: bytes under keys. Keys name their content, so putting the same bytes again is harmless and no
 * caller needs a condition on a write. An object is seen whole or not at all. Every call ends within its deadline; what may
 * pass by itself (a cut connection, an answer 500 or 503) was tried again before it fails. Failures are a SetupError where a
 * person has to act (no such bucket, no right, no room, a damaged object), else an AgentEnvError `device_unavailable`.
 */
export interface ObjectStore extends AsyncDisposable {
  /** As a person names it; holds no secret. */
  readonly url: string;
  /** How many calls at once are worth it. */
  readonly parallel: number;
  /** Throws where nothing can be put, as far as that can be told without an object. */
  checkWritable(): Promise<void>;
  /** Ends when the object is safe: it will be there after a power cut. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Undefined where there is no such object. Of one larger than `limit` bytes, the first `limit` + 1. */
  get(key: string, limit: number): Promise<Buffer | undefined>;
  head(key: string): Promise<ObjectInfo | undefined>;
  list(prefix: string, next?: string): Promise<ObjectPage>;
  /** Does nothing where there is no such object. */
  delete(key: string): Promise<void>;
}

/** An object, where its store finds it undamaged. */
export async function undamaged(
  store: ObjectStore,
  key: string,
  limit: number,
): Promise<Buffer | "tampered" | undefined> {
  try {
    return await store.get(key, limit);
  } catch (thrown) {
    if (thrown instanceof ObjectDamaged) return "tampered";
    throw thrown;
  }
}

/** Every object below a prefix, page by page. */
export async function* objectsBelow(store: ObjectStore, prefix: string): AsyncGenerator<ObjectInfo> {
  let next: string | undefined;
  do {
    const page = await store.list(prefix, next);
    yield* page.objects;
    next = page.next;
  } while (next !== undefined);
}

/** Runs `work` on every item, at most `store.parallel` at once. The first failure ends it, once what runs has ended. */
export async function inParallel<T>(
  store: ObjectStore,
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]();
  let failed = false;
  const lane = async () => {
    for (const item of rest) {
      if (failed) return;
      await work(item).catch((thrown: unknown) => {
        failed = true;
        throw thrown;
      });
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: Math.min(store.parallel, items.length) }, lane));
  for (const each of lanes) if (each.status === "rejected") throw each.reason;
}

/** Keys are ours, made of names and digests; anything else would be a path or a URL in disguise. */
export function checkKey(key: string): void {
  if (key.length > 512 || !/^[A-Za-z0-9][A-Za-z0-9._-]*(\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/.test(key)) {
    throw new TypeError(`not a key of an object store: ${JSON.stringify(key.slice(0, 200))}`);
  }
}

/** A prefix is the beginning of a key: nothing, or whole parts and then a `/`, or a part begun. */
export function checkPrefix(prefix: string): void {
  if (prefix !== "") checkKey(prefix.endsWith("/") ? prefix.slice(0, -1) : prefix);
}
