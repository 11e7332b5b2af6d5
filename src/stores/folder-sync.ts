import { open } from "node:fs/promises";

interface Syncing {
  readonly running: Promise<void>;
  /** Begins when `running` has ended; serves everyone who came meanwhile. */
  following?: Promise<void>;
}

/** Makes the names in folders last. Many who ask for one folder at once share a sync that began after each had asked. */
export class FolderSync {
  readonly #syncing = new Map<string, Syncing>();

  /** Ends once every name that was in the folder when this was called survives a power cut. */
  sync(folder: string): Promise<void> {
    const there = this.#syncing.get(folder);
    if (there === undefined) return this.#start(folder);
    there.following ??= there.running.then(
      () => this.#start(folder),
      () => this.#start(folder),
    );
    return there.following;
  }

  #start(folder: string): Promise<void> {
    const running = syncNow(folder).finally(() => {
      if (this.#syncing.get(folder)?.running === running) this.#syncing.delete(folder);
    });
    this.#syncing.set(folder, { running });
    return running;
  }
}

async function syncNow(folder: string): Promise<void> {
  const handle = await open(folder, "r").catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code !== "ENOENT") throw thrown;
  });
  // Deleted meanwhile, and every name in it.
  if (handle === undefined) return;
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
