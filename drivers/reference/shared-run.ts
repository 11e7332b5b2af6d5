/**
 * Runs something one at a time for all who ask. Who asks while it runs gets the next run, together with all others who asked
 * by then: what a run finds out is never older than the question.
 */
export class SharedRun<T> {
  #running: Promise<T> | undefined;
  #next: Promise<T> | undefined;

  constructor(private readonly run: () => Promise<T>) {}

  ask(): Promise<T> {
    // Between the end of a run and the beginning of the next there is none that runs, and one that is to come.
    if (this.#next !== undefined) return this.#next;
    if (this.#running === undefined) return this.#start();
    this.#next = this.#running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  #start(): Promise<T> {
    this.#next = undefined;
    const running = this.run().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }
}
