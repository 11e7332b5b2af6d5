import type { Logger } from "pino";
import type { SessionUser } from "../computer/session.js";
import { SetupError } from "../errors.js";
import { endUnder } from "./process-group.js";
import { requirePrograms } from "./programs.js";
import type { Guard } from "./server-side.js";
import { Service } from "./service.js";
import { askDisplay } from "./x-client.js";

export interface DisplayOptions {
  readonly width: number;
  readonly height: number;
  /** Bits of a pixel. Default 24. */
  readonly depth?: number;
  /** Such as `:5`: the X server that answers there is used, else one is started there. Default: a free one. */
  readonly name?: string;
}

export interface Display {
  readonly name: string;
  /** What the screen has, which is what was asked for only if the X server is ours. */
  readonly width: number;
  readonly height: number;
  readonly hasWindowManager: boolean;
  /** The X server that we run; undefined for one that was there. */
  readonly server: Service | undefined;
}

/** A calm blue grey: neither a window nor its shadow looks like it. */
const BACKGROUND = "#3b4a5a";

/** How long an X server that is given up has to end: it removes its socket, whose number nobody else may know yet. */
const GIVEN_UP_MS = 250;

/** Finds or starts the X server. A restarted one gets the same number. */
export async function openDisplay(
  options: DisplayOptions,
  context: { user: SessionUser; log: Logger; guard: Guard; signal?: AbortSignal | undefined; onAway(): void },
): Promise<Display> {
  const { width, height } = options;
  if (options.name !== undefined) {
    const number = /^:(\d{1,5})(?:\.0)?$/.exec(options.name)?.[1];
    if (number === undefined) {
      throw new SetupError(`${options.name} is no display of this machine`, { hint: "a display is named like :5" });
    }
    const there = await askDisplay(`:${number}`);
    if (there !== undefined) return { name: `:${number}`, ...there, server: undefined };
  }
  requirePrograms(["Xvfb"]);

  let name = options.name;
  let picked = Promise.withResolvers<string>();
  const server = new Service(
    {
      name: "display",
      /**
       * The server writes its number to descriptor 1 once it answers. With `-displayfd` it takes no lock file, which holds a
       * pid that means nothing outside the namespace: what keeps two apart is the socket.
       */
      get command(): [string, ...string[]] {
        picked = Promise.withResolvers();
        const number = name === undefined ? [] : [name];
        const screen = `${width}x${height}x${options.depth ?? 24}`;
        return ["Xvfb", ...number, "-displayfd", "1", "-screen", "0", screen, "-nolisten", "tcp", "-noreset"];
      },
      ready: async (signal) => {
        name = `:${await picked.promise}`;
        context.guard.removes(`/tmp/.X11-unix/X${name.slice(1)}`);
        await dress(name, context, signal);
      },
    },
    {
      user: context.user,
      log: context.log,
      onAway: context.onAway,
      onLine: (line) => {
        if (/^\d+$/.test(line)) picked.resolve(line);
      },
    },
  );
  try {
    await server.start(context.signal);
  } catch (thrown) {
    await server.stop(GIVEN_UP_MS);
    throw thrown;
  }
  if (name === undefined) throw new Error("the X server answered without its number");
  return { name, width, height, hasWindowManager: false, server };
}

/**
 * What a display of ours gets each time that it came up: a colour, a pointer, and who may connect. Settles once the programs that
 * do it have ended, which `signal` kills.
 */
async function dress(
  name: string,
  { user, log }: { user: SessionUser; log: Logger },
  signal: AbortSignal,
): Promise<void> {
  const run = async (...[file, ...args]: [string, ...string[]]) => {
    const how = await endUnder(signal, user.spawn(file, args, { env: { DISPLAY: name }, stdio: "ignore" }));
    if (how !== "exit code 0" && !signal.aborted) log.warn({ how }, `${file} failed on display ${name}`);
  };
  await Promise.all([
    // An X server lets every user of the machine connect until it is told who may.
    run("xhost", `+si:localuser:${user.name}`, "+si:localuser:root", "-local:"),
    run("xsetroot", "-solid", BACKGROUND, "-cursor_name", "left_ptr"),
  ]);
}
