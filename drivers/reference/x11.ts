import { createRequire } from "node:module";

/**
 * What is used here of the npm package `x11`, which has no types. Its requests take callbacks; a callback that answers true
 * has dealt with the error.
 */
export interface X11 {
  createClient(
    options: { display: string; shm: boolean; bufferRequests: true },
    done: (error: Error | undefined, display: XDisplay) => void,
  ): XClient;
  readonly keySyms: Readonly<Record<string, number | { code: number; description: string | null }>>;
}

export type Done<T> = (error: Error | null | undefined, value: T) => boolean;

export interface XDisplay {
  readonly screen: readonly XScreen[];
  readonly image_byte_order: number;
  readonly min_keycode: number;
  readonly max_keycode: number;
  readonly format: Readonly<Record<number, { bits_per_pixel: number }>>;
}

export interface XScreen {
  readonly root: number;
  readonly root_depth: number;
}

/** An event as the package parses it; only what is read here. */
export interface XEvent extends Partial<XkbState> {
  readonly name?: string;
  readonly message_type?: number;
  readonly data?: readonly number[];
}

export interface XClient {
  readonly stream: { destroy(): void; once(event: "close", listener: () => void): void };
  /** Atoms by their names, as far as they are known. */
  atoms: Record<string, number>;
  /** Requests are numbered; one that is packed by hand takes its number before it is put. */
  seq_num: number;
  readonly replies: Record<number, [(body: Buffer, detail: number) => unknown, Done<never>]>;
  readonly pack_stream: { put(packet: Buffer): void; submit(expectsReply?: boolean): boolean };
  on(event: "error", listener: (error: Error) => void): this;
  on(event: "end", listener: () => void): this;
  on(event: "event", listener: (event: XEvent) => void): this;
  off(event: "event", listener: (event: XEvent) => void): this;
  require<Name extends keyof Extensions>(name: Name, done: Done<Extensions[Name]>): void;
  AllocID(): number;

  GetInputFocus(done: Done<{ focus: number }>): void;
  GetGeometry(drawable: number, done: Done<{ width: number; height: number }>): void;
  QueryPointer(window: number, done: Done<PointerState>): void;
  QueryTree(window: number, done: Done<{ root: number; parent: number }>): void;
  QueryKeymap(done: Done<Buffer>): void;
  GetKeyboardControl(done: Done<{ globalAutoRepeat: number }>): void;
  ChangeKeyboardControl(values: { autoRepeatMode: 0 | 1 | 2 }): void;
  ChangeWindowAttributes(window: number, values: { eventMask: number }): void;
  InternAtom(onlyIfExists: boolean, name: string, done: Done<number>): void;
  GetProperty(
    remove: 0,
    window: number,
    property: number,
    type: number,
    offset: number,
    length: number,
    done: Done<{ type: number; format: number; data: Buffer }>,
  ): void;
  ChangeProperty(mode: 0, window: number, property: number, type: number, format: 8, data: string): void;
  SendClientMessage(
    destination: number,
    about: number,
    type: number,
    format: 32,
    data: readonly number[],
    eventMask: number,
  ): void;
  SendEvent(destination: number, propagate: 0, eventMask: number, event: Buffer): void;
  GetImage(
    format: number,
    drawable: number,
    x: number,
    y: number,
    width: number,
    height: number,
    planes: number,
    done: Done<{ data: Buffer }>,
  ): void;
  GrabServer(): void;
  UngrabServer(): void;
}

export interface PointerState {
  readonly child: number;
  readonly rootX: number;
  readonly rootY: number;
  readonly keyMask: number;
}

interface Extensions {
  xtest: XTest;
  xkb: Xkb;
  damage: Damage;
  shm: Shm;
  randr: Randr;
}

export interface XTest {
  FakeInput(type: number, detail: number, delay: number, window: number, x: number, y: number): void;
  GrabControl(impervious: boolean): void;
}

export interface Xkb {
  readonly majorOpcode: number;
  GetState(device: number, done: Done<XkbState>): void;
  SelectEvents(
    device: number,
    which: number,
    clear: number,
    all: number,
    affectMap: number,
    map: number,
    details: { stateNotify: [affected: number, wanted: number] },
  ): void;
  LatchLockState(
    device: number,
    affectLocks: number,
    locks: number,
    lockGroup: boolean,
    group: number,
    affectLatches: number,
    latches: number,
    latchGroup: boolean,
    groupLatch: number,
  ): void;
}

export interface XkbState {
  readonly baseMods: number;
  readonly latchedMods: number;
  readonly lockedMods: number;
  /** The effective group, from 0. */
  readonly group: number;
}

export interface Damage {
  Create(damage: number, drawable: number, level: number): void;
  Subtract(damage: number, repair: 0, parts: 0): void;
}

export interface Shm {
  usable(done: Done<boolean>): void;
  createSegment(size: number, done: Done<ShmSegment>): void;
}

export interface ShmSegment {
  readonly size: number;
  readonly shmseg: number;
  readonly buffer: Buffer;
  getImage(
    drawable: number,
    x: number,
    y: number,
    width: number,
    height: number,
    planes: number,
    format: number,
    offset: number,
    done: Done<{ size: number }>,
  ): void;
  detach(done?: () => void): void;
}

export interface Randr {
  QueryVersion(major: number, minor: number, done: Done<unknown>): void;
  GetScreenSizeRange(
    window: number,
    done: Done<{ minWidth: number; minHeight: number; maxWidth: number; maxHeight: number }>,
  ): void;
  GetScreenResources(window: number, done: Done<ScreenResources>): void;
  GetOutputInfo(
    output: number,
    time: number,
    done: Done<{ crtc: number; modes: number[]; mm_width: number; mm_height: number }>,
  ): void;
  GetCrtcInfo(crtc: number, time: number, done: Done<{ mode: number; rotation: number }>): void;
  CreateMode(window: number, mode: { width: number; height: number; name: string }, done: Done<number>): void;
  AddOutputMode(output: number, mode: number): void;
  SetScreenSize(window: number, width: number, height: number, mmWidth: number, mmHeight: number): void;
  SetCrtcConfig(
    crtc: number,
    time: number,
    configTime: number,
    x: number,
    y: number,
    mode: number,
    rotation: number,
    outputs: readonly number[],
    done: Done<{ status: number }>,
  ): void;
}

export interface ScreenResources {
  readonly config_timestamp: number;
  readonly crtcs: readonly number[];
  readonly outputs: readonly number[];
  readonly modeinfos: readonly { id: number; width: number; height: number }[];
}

let loaded: X11 | undefined;

/** The package, loaded at its first use. */
export function x11(): X11 {
  loaded ??= createRequire(import.meta.url)("x11") as X11;
  return loaded;
}
