/** Something that stops the set-up: what happened, the last lines of what said so, and what a person can do. */
export class Problem extends Error {
  constructor(message, { advice, tail = [], exitCode = 1 } = {}) {
    super(message);
    this.advice = advice;
    this.tail = tail;
    this.exitCode = exitCode;
  }
}

/** A signal ended the set-up: nothing is wrong, and the next run goes on where this one was. */
export class Stopped extends Problem {
  constructor({ signal, exitCode }) {
    super(`Stopped by ${signal}. The same command goes on from here.`, { exitCode });
  }
}
