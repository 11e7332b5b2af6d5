import type { Connection } from "./connection.js";
import type { Xkb } from "./x11.js";

/** The keyboard that all of the display's keyboards feed. */
export const CORE_KEYBOARD = 0x100;

/** How modifiers choose among a key's keysyms. */
interface KeyType {
  /** The modifiers that count. */
  readonly mask: number;
  readonly levels: readonly { readonly mods: number; readonly level: number }[];
}

interface Key {
  readonly types: readonly number[];
  readonly groups: number;
  /** How a group that the key doesn't have is brought into range: 0 wrap, 1 clamp, 2 redirect to `redirect`. */
  readonly outOfRange: number;
  readonly redirect: number;
  readonly width: number;
  readonly symbols: readonly number[];
}

/** The keysyms of a key alone and with Shift. */
export type KeySymbols = readonly [alone: number, shifted: number];

/** The keysyms of a row of keys, as they are on the wire. */
interface SymbolsPart {
  readonly first: number;
  readonly count: number;
  readonly total: number;
  readonly bytes: Buffer;
}

/** XKB's second type is the same on every keymap: Shift chooses the second level, and nothing else counts. */
const TWO_LEVELS = [1, 1, 1, 1] as const;
const NOTHING: Key = { types: [0, 0, 0, 0], groups: 0, outOfRange: 0, redirect: 0, width: 0, symbols: [] };

/** The server's keymap: which keysym a key makes in a group with modifiers. */
export class XkbMap {
  constructor(
    readonly firstKeycode: number,
    private readonly types: readonly KeyType[],
    private readonly keys: readonly Key[],
    /** Each key's real modifiers. */
    private readonly modifiers: ReadonlyMap<number, number>,
  ) {}

  get keycodes(): number[] {
    return this.keys.map((_, index) => this.firstKeycode + index);
  }

  /**
   * The keysyms of all keys from the first to the last of `changes`, as a SetMap request has them: those of `changes` in one group
   * with two levels, or none, and all others as they are.
   */
  withChanges(changes: ReadonlyMap<number, KeySymbols | undefined>): SymbolsPart {
    const keycodes = [...changes.keys()];
    const [first, last] = [Math.min(...keycodes), Math.max(...keycodes)];
    const keys = this.keys.slice(first - this.firstKeycode, last - this.firstKeycode + 1).map((key, index) => {
      if (!changes.has(first + index)) return key;
      const symbols = changes.get(first + index);
      return symbols === undefined ? NOTHING : { ...NOTHING, types: TWO_LEVELS, groups: 1, width: 2, symbols };
    });
    const total = keys.reduce((sum, { symbols }) => sum + symbols.length, 0);
    const bytes = Buffer.alloc(keys.length * 8 + total * 4);
    let offset = 0;
    for (const { types, groups, outOfRange, redirect, width, symbols } of keys) {
      bytes.set(types, offset);
      bytes.writeUInt8(groups | (redirect << 4) | (outOfRange << 6), offset + 4);
      bytes.writeUInt8(width, offset + 5);
      bytes.writeUInt16LE(symbols.length, offset + 6);
      offset += 8;
      for (const symbol of symbols) offset = bytes.writeUInt32LE(symbol, offset);
    }
    return { first, count: keys.length, total, bytes };
  }

  symbols(keycode: number): readonly number[] {
    return this.keys[keycode - this.firstKeycode]?.symbols ?? [];
  }

  modifiersOf(keycode: number): number {
    return this.modifiers.get(keycode) ?? 0;
  }

  /** 0 where the key makes none. */
  symbolAt(keycode: number, group: number, modifiers: number): number {
    const key = this.keys[keycode - this.firstKeycode];
    if (key === undefined || key.groups === 0) return 0;
    const own = groupOf(key, group);
    const type = this.types[key.types[own] ?? 0];
    if (type === undefined) return 0;
    const mods = modifiers & type.mask;
    const level = type.levels.find((entry) => entry.mods === mods)?.level ?? 0;
    return key.symbols[own * key.width + level] ?? 0;
  }
}

function groupOf({ groups, outOfRange, redirect }: Key, group: number): number {
  if (group < groups) return group;
  if (outOfRange === 1) return groups - 1;
  if (outOfRange === 2) return redirect < groups ? redirect : 0;
  return group % groups;
}

/** Parts of a map: key types, keysyms, the modifier map. */
const SYMBOLS = 0x2;
const PARTS = 0x1 | SYMBOLS | 0x4;

/** Asks for the keymap. The package has no GetMap (XKB's request 8): packed and read here, after the XKB protocol, 16.3. */
export async function readXkbMap(connection: Connection, xkb: Xkb): Promise<XkbMap> {
  const { client } = connection;
  const reply = await connection.ask<Buffer>((done) => {
    const packet = Buffer.alloc(28);
    packet.writeUInt8(xkb.majorOpcode, 0);
    packet.writeUInt8(8, 1);
    packet.writeUInt16LE(packet.length / 4, 2);
    packet.writeUInt16LE(CORE_KEYBOARD, 4);
    packet.writeUInt16LE(PARTS, 6);
    client.seq_num += 1;
    client.replies[client.seq_num] = [(body) => body, done];
    client.pack_stream.put(packet);
    client.pack_stream.submit(true);
  });
  return parseXkbMap(reply);
}

/**
 * Gives keys other keysyms, all in one request (XKB's SetMap, 9): each change of the keymap makes every client of the display
 * read it anew, and a window manager takes milliseconds for that.
 */
export function writeXkbSymbols(connection: Connection, xkb: Xkb, { first, count, total, bytes }: SymbolsPart): void {
  const { client } = connection;
  const packet = Buffer.alloc(36 + bytes.length);
  packet.writeUInt8(xkb.majorOpcode, 0);
  packet.writeUInt8(9, 1);
  packet.writeUInt16LE(packet.length / 4, 2);
  packet.writeUInt16LE(CORE_KEYBOARD, 4);
  packet.writeUInt16LE(SYMBOLS, 6);
  packet.writeUInt8(connection.display.min_keycode, 10);
  packet.writeUInt8(connection.display.max_keycode, 11);
  packet.writeUInt8(first, 14);
  packet.writeUInt8(count, 15);
  packet.writeUInt16LE(total, 16);
  bytes.copy(packet, 36);
  connection.tell(() => {
    client.seq_num += 1;
    client.pack_stream.put(packet);
    client.pack_stream.submit();
  });
}

/** Reads a GetMap reply from its ninth byte on. */
export function parseXkbMap(reply: Buffer): XkbMap {
  const at = (offset: number) => reply.readUInt8(offset - 8);
  const typeCount = at(15);
  const firstKeycode = at(17);
  const keyCount = at(20);
  const modifierCount = at(33);
  let offset = 40 - 8;

  const types: KeyType[] = [];
  for (let index = 0; index < typeCount; index += 1) {
    const mask = reply.readUInt8(offset);
    const entryCount = reply.readUInt8(offset + 5);
    const hasPreserve = reply.readUInt8(offset + 6) !== 0;
    offset += 8;
    const levels = [];
    for (let entry = 0; entry < entryCount; entry += 1, offset += 8) {
      const active = reply.readUInt8(offset) !== 0;
      if (active) levels.push({ mods: reply.readUInt8(offset + 1), level: reply.readUInt8(offset + 2) });
    }
    if (hasPreserve) offset += entryCount * 4;
    types.push({ mask, levels });
  }

  const keys: Key[] = [];
  for (let index = 0; index < keyCount; index += 1) {
    const info = reply.readUInt8(offset + 4);
    const symbolCount = reply.readUInt16LE(offset + 6);
    const key = {
      types: [...reply.subarray(offset, offset + 4)],
      groups: info & 0x0f,
      outOfRange: info >> 6,
      redirect: (info >> 4) & 0x03,
      width: reply.readUInt8(offset + 5),
      symbols: Array.from({ length: symbolCount }, (_, symbol) => reply.readUInt32LE(offset + 8 + symbol * 4)),
    };
    offset += 8 + symbolCount * 4;
    keys.push(key);
  }

  const modifiers = new Map<number, number>();
  for (let index = 0; index < modifierCount; index += 1, offset += 2) {
    modifiers.set(reply.readUInt8(offset), reply.readUInt8(offset + 1));
  }
  return new XkbMap(firstKeycode, types, keys, modifiers);
}
