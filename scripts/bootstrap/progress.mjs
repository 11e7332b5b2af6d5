const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_MS = 120;

const out = process.stderr;
const live = Boolean(out.isTTY) && process.env.TERM !== "dumb";
const coloured = live && !process.env.NO_COLOR;

const paint = (code, text) => (coloured ? `\x1b[${code}m${text}\x1b[0m` : text);
export const green = (text) => paint(32, text);
export const red = (text) => paint(31, text);
export const dim = (text) => paint(2, text);

export function say(line) {
  out.write(`${line}\n`);
}

/**
 * One line a step on standard error: a spinner with the elapsed time on a terminal, a line at the start and one at the end
 * elsewhere. `detail` replaces the grey text behind the title; a terminal alone shows it.
 */
export class StepLine {
  #title;
  #started = performance.now();
  #timer;
  #frame = 0;
  #detail = "";

  constructor(title) {
    this.#title = title;
    if (!live) {
      say(`${title} …`);
      return;
    }
    this.#draw();
    this.#timer = setInterval(() => this.#draw(), FRAME_MS);
    this.#timer.unref();
  }

  detail(text) {
    this.#detail = text;
  }

  /** Leaves the line to a program that draws its own progress on the same terminal. */
  handOver() {
    if (this.#timer === undefined) return;
    this.#clear();
    say(`${this.#title} …`);
  }

  done() {
    this.#end(green("✔"), `${this.#title} done in ${this.#seconds()}`);
  }

  /** `what` is "failed" or "stopped". */
  broken(what) {
    this.#end(red("✖"), `${this.#title} ${what} after ${this.#seconds()}`);
  }

  #end(mark, text) {
    this.#clear();
    say(live ? `${mark} ${text}` : text);
  }

  #clear() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (live) out.write("\r\x1b[2K");
  }

  #draw() {
    this.#frame = (this.#frame + 1) % FRAMES.length;
    const text = `${FRAMES[this.#frame]} ${this.#title}  ${this.#seconds()}`;
    const room = (out.columns || 80) - text.length - 3;
    const detail = room > 8 && this.#detail ? `  ${this.#detail.slice(0, room)}` : "";
    out.write(`\r\x1b[2K${text}${dim(detail)}`);
  }

  #seconds() {
    const seconds = (performance.now() - this.#started) / 1000;
    return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  }
}
