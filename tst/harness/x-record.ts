import { until } from "./until.js";
import { KINDS, type Received, XTestClient } from "./x-client.js";

/** The codes of the core protocol's events from KeyPress to MotionNotify. */
const EVENTS = ["KeyPress", "KeyRelease", "ButtonPress", "ButtonRelease", "MotionNotify"] as const;
const KEY_PRESS = 2;
const MOTION_NOTIFY = 6;
const EVENT_BYTES = 32;

export interface Recorded extends Received {
  /** The server's, in milliseconds. */
  readonly time: number;
}

/** What a display's devices do, as the server tells it through RECORD before any program gets it. */
export class XRecord implements Disposable {
  readonly #events: Recorded[] = [];

  private constructor(
    private readonly control: XTestClient,
    private readonly data: XTestClient,
  ) {}

  static async start(display: string): Promise<XRecord> {
    const [control, data] = [await XTestClient.open(display), await XTestClient.open(display)];
    const record = new XRecord(control, data);
    try {
      const context = control.client.AllocID();
      const { CS, ...extension } = await control.extension("record");
      extension.CreateContext(
        context,
        0,
        [CS.AllClients],
        [{ deviceEvents: { first: KEY_PRESS, last: MOTION_NOTIFY } }],
      );
      await control.sync();
      const { EnableContext, Category } = await data.extension("record");
      await new Promise<void>((resolve) => {
        EnableContext(
          context,
          ({ category, data: bytes }: { category: number; data: Buffer }) => {
            if (category === Category.StartOfData) resolve();
            else if (category === Category.FromServer) record.#add(bytes);
          },
          () => true,
        );
      });
      return record;
    } catch (thrown) {
      record[Symbol.dispose]();
      throw thrown;
    }
  }

  #add(bytes: Buffer): void {
    for (let at = 0; at + EVENT_BYTES <= bytes.length; at += EVENT_BYTES) {
      const name = EVENTS[(bytes.readUInt8(at) & 0x7f) - KEY_PRESS];
      const kind = KINDS.get(name ?? "");
      if (kind === undefined) continue;
      this.#events.push({
        kind,
        detail: kind === "motion" ? 0 : bytes.readUInt8(at + 1),
        time: bytes.readUInt32LE(at + 4),
        x: bytes.readInt16LE(at + 20),
        y: bytes.readInt16LE(at + 22),
        state: bytes.readUInt16LE(at + 28),
      });
    }
  }

  /** What has come, once there are so many at least; forgotten then. */
  async take(count: number, motions = false): Promise<Recorded[]> {
    const those = () => this.#events.filter(({ kind }) => motions || kind !== "motion");
    await until(those, (seen) => seen.length >= count, { what: `${count} recorded events` });
    await this.control.sync();
    const taken = those();
    this.#events.length = 0;
    return taken;
  }

  [Symbol.dispose](): void {
    this.control[Symbol.dispose]();
    this.data[Symbol.dispose]();
  }
}
