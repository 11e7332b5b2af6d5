import type { ComputerLog } from "../../src/computer/log.js";
import type { Capture } from "../../src/computer/operations.js";
import { Connection } from "./connection.js";
import { Link, type Session } from "./link.js";
import { SharedRun } from "./shared-run.js";
import type { Damage, Shm, ShmSegment } from "./x11.js";

const ALL_PLANES = 0xffffffff;
const Z_PIXMAP = 2;
/** DAMAGE's report level that sends one event when the damage begins. */
const NON_EMPTY = 3;
const LITTLE_ENDIAN = 0;
const BYTES_PER_PIXEL = 4;

interface ScreenSession extends Session {
  readonly shm: Shm | undefined;
  readonly damage: { extension: Damage; id: number } | undefined;
  /** Whether something was drawn since the last capture began, as far as the server has told. */
  changed: boolean;
  segment: ShmSegment | undefined;
}

interface Taken {
  readonly session: ScreenSession;
  readonly capture: Extract<Capture, { raw: Buffer }>;
}

/** The screen's picture, on a connection of its own: a capture never makes input wait. */
export class Screen {
  readonly #link: Link<ScreenSession>;
  readonly #captures = new SharedRun(() => this.#link.read((session) => this.#capture(session)));
  #last: Taken | undefined;

  constructor(display: string, log: ComputerLog) {
    this.#link = new Link(() => openScreen(display, log));
  }

  /**
   * The screen as it is now. While nothing changes the last capture is answered again, without reading a pixel: where the
   * server has DAMAGE.
   */
  capture(): Promise<Capture> {
    return this.#captures.ask();
  }

  async close(): Promise<void> {
    await this.#link.close();
  }

  async #capture(session: ScreenSession): Promise<Capture> {
    const { connection, damage } = session;
    const { client, root } = connection;
    // Its answer also says that the events of all drawing until now have come.
    const { width, height } = await connection.ask<{ width: number; height: number }>((done) =>
      client.GetGeometry(root, done),
    );
    const last = this.#last?.session === session ? this.#last.capture : undefined;
    const isSameSize = last?.width === width && last.height === height;
    if (last !== undefined && isSameSize && damage !== undefined && !session.changed) return last;
    if (damage !== undefined) {
      session.changed = false;
      connection.tell(() => damage.extension.Subtract(damage.id, 0, 0));
    }
    try {
      const raw = await this.#pixels(session, width, height);
      const capture = { raw, layout: "BGRX", width, height } as const;
      this.#last = { session, capture };
      return capture;
    } catch (thrown) {
      session.changed = true;
      throw thrown;
    }
  }

  async #pixels(session: ScreenSession, width: number, height: number): Promise<Buffer> {
    const { connection } = session;
    const { client, root } = connection;
    const size = width * height * BYTES_PER_PIXEL;
    const segment = await segmentOf(session, size);
    if (segment === undefined) {
      const { data } = await connection.ask<{ data: Buffer }>((done) =>
        client.GetImage(Z_PIXMAP, root, 0, 0, width, height, ALL_PLANES, done),
      );
      return data;
    }
    await connection.ask((done) => segment.getImage(root, 0, 0, width, height, ALL_PLANES, Z_PIXMAP, 0, done));
    // The server writes into it again when the next capture asks it to, behind the answer to its first question.
    return segment.buffer.subarray(0, size);
  }
}

async function openScreen(display: string, log: ComputerLog): Promise<ScreenSession> {
  const connection = await Connection.open(display, {
    shm: true,
    onProtocolError: (err) => log.debug({ err }, "the X server refused a request"),
  });
  try {
    const { client, root, depth } = connection;
    const bits = connection.display.format[depth]?.bits_per_pixel;
    if (bits !== 32 || depth < 24 || connection.display.image_byte_order !== LITTLE_ENDIAN) {
      throw new Error(`the display has ${depth} bits a pixel; it needs 24`);
    }
    const shm = await connection.ask<Shm>((done) => client.require("shm", done)).catch(() => undefined);
    const usable = shm !== undefined && (await connection.ask<boolean>((done) => shm.usable(done)));
    const extension = await connection.ask<Damage>((done) => client.require("damage", done)).catch(() => undefined);
    const session: ScreenSession = {
      connection,
      shm: usable ? shm : undefined,
      damage: extension === undefined ? undefined : { extension, id: client.AllocID() },
      changed: true,
      segment: undefined,
    };
    client.on("event", ({ name }) => {
      if (name === "DamageNotify") session.changed = true;
    });
    const { damage } = session;
    if (damage !== undefined) connection.tell(() => damage.extension.Create(damage.id, root, NON_EMPTY));
    return session;
  } catch (thrown) {
    connection[Symbol.dispose]();
    throw thrown;
  }
}

async function segmentOf(session: ScreenSession, size: number): Promise<ShmSegment | undefined> {
  const { connection, shm } = session;
  if (shm === undefined) return undefined;
  if (session.segment?.size !== size) {
    session.segment?.detach();
    session.segment = undefined;
    session.segment = await connection.ask<ShmSegment>((done) => shm.createSegment(size, done));
  }
  return session.segment;
}
