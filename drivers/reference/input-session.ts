import { randomUUID } from "node:crypto";
import type { ComputerLog } from "../../src/computer/log.js";
import { Connection } from "./connection.js";
import { Keymap } from "./keymap.js";
import type { Session } from "./link.js";
import type { PointerState, Randr, Xkb, XkbState, XTest } from "./x11.js";
import { CORE_KEYBOARD, type KeySymbols, readXkbMap, writeXkbSymbols } from "./xkb-map.js";

const KEY_PRESS = 2;
const KEY_RELEASE = 3;
const BUTTON_PRESS = 4;
const BUTTON_RELEASE = 5;
const MOTION = 6;
/** XKB's events NewKeyboardNotify and MapNotify, and all parts of a map. */
const MAP_EVENTS = 0x1 | 0x2;
const MAP_PARTS = 0xff;
/** XKB's event StateNotify, and what changes of modifiers and groups are told of: all. */
const STATE_EVENT = 0x4;
const STATE_PARTS = 0xff;
/** For so long after its last answer, in milliseconds, the server is taken to be there, and to have told of all that changed. */
const FRESH_MS = 1_000;
const STRUCTURE_NOTIFY = 0x20000;
const SUBSTRUCTURE_NOTIFY = 0x80000;
/** A property of the root window, which tells a server from the one that is started in its place. */
const STAMP = "_AGENTENV_REFERENCE_DRIVER";

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** The connection that input is sent on, and what is known of the server behind it. */
export class InputSession implements Session {
  #keymap: { version: number; map: Keymap } | undefined;
  #keymapVersion = 0;
  #told: XkbState | undefined;
  #size: Size | undefined;
  #sizeVersion = 0;

  private constructor(
    readonly connection: Connection,
    private readonly xtest: XTest,
    private readonly xkb: Xkb,
    readonly randr: Randr | undefined,
    /** The same for as long as the server runs. */
    readonly server: string,
  ) {
    connection.client.on("event", ({ name, baseMods = 0, latchedMods = 0, lockedMods = 0, group = 0 }) => {
      if (name === "MappingNotify" || name === "XkbEvent") this.#keymapVersion += 1;
      else if (name === "ConfigureNotify") this.#forgetSize();
      else if (name === "XkbStateNotify") this.#told = { baseMods, latchedMods, lockedMods, group };
    });
  }

  /** Throws ConnectionLost; another error where the server lacks XTEST or XKEYBOARD. */
  static async open(display: string, log: ComputerLog): Promise<InputSession> {
    const connection = await Connection.open(display, {
      shm: false,
      onProtocolError: (err) => log.debug({ err }, "the X server refused a request"),
    });
    try {
      const { client, root } = connection;
      const xtest = await connection.ask<XTest>((done) => client.require("xtest", done));
      const xkb = await connection.ask<Xkb>((done) => client.require("xkb", done));
      const randr = await connection.ask<Randr>((done) => client.require("randr", done)).catch(() => undefined);
      // Another client that has grabbed the server for itself doesn't keep input from being sent.
      connection.tell(() => xtest.GrabControl(true));
      connection.tell(() =>
        xkb.SelectEvents(CORE_KEYBOARD, MAP_EVENTS | STATE_EVENT, 0, MAP_EVENTS, MAP_PARTS, MAP_PARTS, {
          stateNotify: [STATE_PARTS, STATE_PARTS],
        }),
      );
      // Its own changes of size, and answers to pings, which are sent to it.
      const eventMask = STRUCTURE_NOTIFY | SUBSTRUCTURE_NOTIFY;
      connection.tell(() => client.ChangeWindowAttributes(root, { eventMask }));
      return new InputSession(connection, xtest, xkb, randr, await stampOf(connection));
    } catch (thrown) {
      connection[Symbol.dispose]();
      throw thrown;
    }
  }

  /** Changes with every change of the keymap that the server has told of. */
  get keymapVersion(): number {
    return this.#keymapVersion;
  }

  /** The keymap as it is now. */
  async keymap(): Promise<Keymap> {
    for (;;) {
      const version = this.#keymapVersion;
      if (this.#keymap?.version === version) return this.#keymap.map;
      this.#keymap = { version, map: new Keymap(await readXkbMap(this.connection, this.xkb)) };
    }
  }

  /**
   * Gives keys other keysyms, or none; the server has done it when this resolves. Answers false, with nothing done, where the
   * keymap is no longer the one that was read last.
   */
  async changeKeymap(changes: ReadonlyMap<number, KeySymbols | undefined>): Promise<boolean> {
    const { connection } = this;
    const { client } = connection;
    // Keys in between are written as they are, so nobody else may change them meanwhile.
    connection.tell(() => client.GrabServer());
    await connection.sync();
    const read = this.#keymap;
    const isCurrent = read !== undefined && read.version === this.#keymapVersion;
    if (isCurrent) writeXkbSymbols(connection, this.xkb, read.map.withChanges(changes));
    connection.tell(() => client.UngrabServer());
    await connection.sync();
    return isCurrent;
  }

  /** The keyboard's state as the server has told of it; undefined where it has to be asked. */
  get knownState(): XkbState | undefined {
    return this.connection.sinceAnswer < FRESH_MS ? this.#told : undefined;
  }

  async keyboardState(): Promise<XkbState> {
    this.#told = await this.connection.ask<XkbState>((done) => this.xkb.GetState(CORE_KEYBOARD, done));
    return this.#told;
  }

  async keysDown(): Promise<Set<number>> {
    const bits = await this.connection.ask<Buffer>((done) => this.connection.client.QueryKeymap(done));
    const down = new Set<number>();
    for (const [index, byte] of bits.entries()) {
      for (let bit = 0; bit < 8; bit += 1) if ((byte >> bit) & 1) down.add(index * 8 + bit);
    }
    return down;
  }

  pointer(): Promise<PointerState> {
    return this.connection.ask((done) => this.connection.client.QueryPointer(this.connection.root, done));
  }

  /** The root window's size, which the server tells of when it changes. */
  async screenSize(): Promise<Size> {
    if (this.#size !== undefined && this.connection.sinceAnswer < FRESH_MS) return this.#size;
    const { client, root } = this.connection;
    const version = this.#sizeVersion;
    const { width, height } = await this.connection.ask<Size>((done) => client.GetGeometry(root, done));
    const size = { width, height };
    if (version === this.#sizeVersion) this.#size = size;
    return size;
  }

  #forgetSize(): void {
    this.#size = undefined;
    this.#sizeVersion += 1;
  }

  /** Sets modifiers' locks, and takes back what was latched. */
  async lock(affected: number, locks: number): Promise<void> {
    this.connection.tell(() => this.xkb.LatchLockState(CORE_KEYBOARD, affected, locks, false, 0, 0xff, 0, false, 0));
    await this.connection.sync();
  }

  async repeats(): Promise<boolean> {
    const { client } = this.connection;
    const control = await this.connection.ask<{ globalAutoRepeat: number }>((done) => client.GetKeyboardControl(done));
    return control.globalAutoRepeat === 1;
  }

  async setRepeats(on: boolean): Promise<void> {
    this.connection.tell(() => this.connection.client.ChangeKeyboardControl({ autoRepeatMode: on ? 1 : 0 }));
    await this.connection.sync();
  }

  key(keycode: number, down: boolean): void {
    this.#fake(down ? KEY_PRESS : KEY_RELEASE, keycode, 0, 0);
  }

  button(button: number, down: boolean): void {
    this.#fake(down ? BUTTON_PRESS : BUTTON_RELEASE, button, 0, 0);
  }

  move(x: number, y: number): void {
    this.#fake(MOTION, 0, x, y);
  }

  #fake(type: number, detail: number, x: number, y: number): void {
    this.connection.tell(() => this.xtest.FakeInput(type, detail, 0, 0, x, y));
  }
}

async function stampOf(connection: Connection): Promise<string> {
  const { client, root } = connection;
  const [name, string] = [
    await connection.ask<number>((done) => client.InternAtom(false, STAMP, done)),
    await connection.ask<number>((done) => client.InternAtom(false, "STRING", done)),
  ];
  const { data } = await connection.ask<{ data: Buffer }>((done) =>
    client.GetProperty(0, root, name, string, 0, 16, done),
  );
  if (data.length > 0) return data.toString("latin1");
  const stamp = randomUUID();
  connection.tell(() => client.ChangeProperty(0, root, name, string, 8, stamp));
  return stamp;
}
