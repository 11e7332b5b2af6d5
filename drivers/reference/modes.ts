import { AgentEnvError } from "../../src/errors.js";
import type { Display } from "../../src/protocol/computer.js";
import type { InputSession, Size } from "./input-session.js";
import type { Randr, ScreenResources } from "./x11.js";

export type Mode = readonly [width: number, height: number];

/** Sizes that are offered where the server can make them. */
const USUAL: readonly Mode[] = [
  [1920, 1080],
  [1600, 900],
  [1440, 900],
  [1366, 768],
  [1280, 1024],
  [1280, 800],
  [1280, 720],
  [1024, 768],
  [800, 600],
  [640, 480],
];
/** A screen of 96 dots an inch. */
const MM_PER_PIXEL = 25.4 / 96;

/** An output that shows the screen, or a part of it: a CRTC reads the pixels for it. */
interface Output {
  readonly id: number;
  readonly crtc: number;
  readonly modes: readonly number[];
}

/**
 * The sizes that the display can be set to, the largest first. A server with one output makes any size up to its largest; one
 * with several keeps the sizes that the output which shows the screen is set up with. A screen over several outputs stays as it
 * is: which of them were to shrink is nobody's to guess.
 */
export async function displayModes(session: InputSession): Promise<Mode[]> {
  const { width, height } = await session.screenSize();
  const modes = new Map<string, Mode>([[`${width}x${height}`, [width, height]]]);
  const { randr, connection } = session;
  if (randr !== undefined) {
    const { root } = connection;
    const range = await connection.ask<{ minWidth: number; minHeight: number; maxWidth: number; maxHeight: number }>(
      (done) => randr.GetScreenSizeRange(root, done),
    );
    const resources = await resourcesOf(session, randr);
    const outputs = await showingOutputs(session, randr, resources);
    const output = outputs.length === 1 ? outputs[0] : undefined;
    const own = resources.modeinfos
      .filter(({ id }) => output?.modes.includes(id))
      .map((mode): Mode => [mode.width, mode.height]);
    const makesAny = output !== undefined && resources.outputs.length === 1;
    for (const mode of [...own, ...(makesAny ? USUAL : [])]) {
      const fits =
        mode[0] >= range.minWidth &&
        mode[0] <= range.maxWidth &&
        mode[1] >= range.minHeight &&
        mode[1] <= range.maxHeight;
      if (fits) modes.set(mode.join("x"), mode);
    }
  }
  return [...modes.values()].sort((a, b) => b[0] * b[1] - a[0] * a[1]);
}

/** Sets the display to one of its modes. Throws `unsupported` where the server doesn't take it, with the display as it was. */
export async function setDisplayMode(session: InputSession, wanted: Display): Promise<Display> {
  if (wanted.scale !== 1) {
    throw new AgentEnvError("unsupported", `this display has the scale 1, and none else`, { hint: "leave scale out" });
  }
  const before = await session.screenSize();
  if (before.width !== wanted.width || before.height !== wanted.height) await resize(session, wanted, before);
  return { ...(await session.screenSize()), scale: 1 };
}

async function resize(session: InputSession, size: Size, before: Size): Promise<void> {
  const { connection, randr } = session;
  if (randr === undefined) throw refused(size, "it has no RANDR");
  const { client, root } = connection;
  const resources = await resourcesOf(session, randr);
  const [output, ...others] = await showingOutputs(session, randr, resources);
  if (output === undefined) throw refused(size, "none of its outputs shows the screen");
  if (others.length > 0) throw refused(size, "several of its outputs show the screen");
  const { crtc } = output;
  const { mode: oldMode, rotation } = await connection.ask<{ mode: number; rotation: number }>((done) =>
    randr.GetCrtcInfo(crtc, 0, done),
  );
  const mode = await modeOf(session, randr, resources, output, size);
  const configure = async (id: number) => {
    const { status } = await connection.ask<{ status: number }>((done) =>
      randr.SetCrtcConfig(crtc, 0, 0, 0, 0, id, rotation || 1, id === 0 ? [] : [output.id], done),
    );
    if (status !== 0) throw refused(size, `RANDR's status is ${status}`);
  };
  const setSize = async ({ width, height }: Size) => {
    const [mmWidth, mmHeight] = [Math.round(width * MM_PER_PIXEL), Math.round(height * MM_PER_PIXEL)];
    // Xorg's first change to the size that it has room for is none to it, in pixels and millimetres, and the pointer would
    // stay within the screen as it was: what differs in millimetres is one.
    for (const more of [1, 0]) {
      connection.tell(() => randr.SetScreenSize(root, width, height, mmWidth + more, mmHeight));
    }
    await connection.sync();
  };
  // Nobody draws on a screen that is half set. What the output shows has to lie within the screen all the time.
  connection.tell(() => client.GrabServer());
  try {
    await configure(0);
    await setSize(size);
    await configure(mode);
    const now = await session.screenSize();
    if (now.width !== size.width || now.height !== size.height) {
      throw refused(size, `it is ${now.width}x${now.height} all the same`);
    }
  } catch (thrown) {
    await setSize(before);
    await configure(oldMode);
    throw thrown;
  } finally {
    connection.tell(() => client.UngrabServer());
    await connection.sync();
  }
}

async function modeOf(
  { connection }: InputSession,
  randr: Randr,
  resources: ScreenResources,
  output: Output,
  { width, height }: Size,
): Promise<number> {
  const fitting = resources.modeinfos.filter((mode) => mode.width === width && mode.height === height);
  const there = fitting.find(({ id }) => output.modes.includes(id));
  if (there !== undefined) return there.id;
  const id =
    fitting[0]?.id ??
    (await connection.ask<number>((done) =>
      randr.CreateMode(connection.root, { width, height, name: `${width}x${height}` }, done),
    ));
  connection.tell(() => randr.AddOutputMode(output.id, id));
  return id;
}

/** The outputs that show the screen; an only one counts also while it is off, as a change that broke off leaves it. */
async function showingOutputs(
  { connection }: InputSession,
  randr: Randr,
  { outputs, crtcs }: ScreenResources,
): Promise<Output[]> {
  const found = await Promise.all(
    outputs.map(async (id) => {
      const { crtc, modes } = await connection.ask<{ crtc: number; modes: number[] }>((done) =>
        randr.GetOutputInfo(id, 0, done),
      );
      return { id, crtc: crtc || (outputs.length === 1 ? (crtcs[0] ?? 0) : 0), modes };
    }),
  );
  return found.filter(({ crtc }) => crtc !== 0);
}

async function resourcesOf({ connection }: InputSession, randr: Randr): Promise<ScreenResources> {
  await connection.ask((done) => randr.QueryVersion(1, 3, done));
  return connection.ask<ScreenResources>((done) => randr.GetScreenResources(connection.root, done));
}

function refused({ width, height }: Size, why: string): AgentEnvError {
  return new AgentEnvError("unsupported", `the X server can't be set to ${width}x${height}: ${why}`);
}
