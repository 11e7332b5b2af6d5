import type { Logger } from "pino";
import type { ComputerSession, RunningService, ServiceSpec } from "../computer/session.js";
import { Apps } from "./apps.js";
import { type Display, type DisplayOptions, openDisplay } from "./display.js";
import { DESKTOP_PROGRAMS, requirePrograms } from "./programs.js";
import type { Guard } from "./server-side.js";
import { Service, type ServiceOptions } from "./service.js";
import { sessionBus } from "./session-bus.js";
import { SettledInput } from "./settled-input.js";
import { currentAccount, desktopEnvironment, loginEnvironment, OwnUser } from "./users.js";
import { windowManager } from "./window-manager.js";

export interface DesktopOptions {
  readonly display: DisplayOptions;
  /** A folder of its own, 0700: sockets, and what the window manager and the bus read. */
  readonly runtimeDir: string;
  readonly dataDir: string;
  readonly log: Logger;
  /** Who cleans up should this process die. Default: nobody. */
  readonly guard?: Guard;
  /** Gives the start up, which rejects with its reason once nothing is left running. */
  readonly signal?: AbortSignal;
}

/** How long programs get between SIGTERM and SIGKILL: what shows windows, then the buses, then the display. */
const GRACE_MS = { shown: 500, bus: 250, display: 250 } as const;

const NOBODY: Guard = { removes: () => {} };

/**
 * The desktop of a computer, run as this process's own user: the display, the buses, a window manager, the driver's services
 * and the apps that an env starts with. Whatever dies is started again; what shows on the display comes back with it.
 */
export class Desktop {
  readonly session: ComputerSession;
  readonly width: number;
  readonly height: number;
  readonly #options: DesktopOptions;
  readonly #display: Display;
  readonly #apps: Apps;
  readonly #input: SettledInput;
  /** In the order of their starts. */
  readonly #services = new Map<string, Service>();
  #closed: Promise<void> | undefined;

  private constructor(
    session: ComputerSession,
    display: Display,
    apps: Apps,
    input: SettledInput,
    options: DesktopOptions,
  ) {
    this.session = session;
    this.width = display.width;
    this.height = display.height;
    this.#options = options;
    this.#display = display;
    this.#apps = apps;
    this.#input = input;
    if (display.server !== undefined) this.#services.set(display.server.name, display.server);
  }

  /**
   * Resolves once the display, the buses and the window manager answer. A missing program, a display that can't be used and a
   * program that does not come up are SetupErrors; nothing is left running then.
   */
  static async start(options: DesktopOptions): Promise<Desktop> {
    requirePrograms(DESKTOP_PROGRAMS);
    const { runtimeDir, dataDir, log, signal } = options;
    const account = currentAccount();
    const login = loginEnvironment(account);
    let apps: Apps | undefined;
    const display = await openDisplay(options.display, {
      user: new OwnUser(account, { ...login, XDG_RUNTIME_DIR: runtimeDir }),
      log,
      guard: options.guard ?? NOBODY,
      signal,
      onAway: () => apps?.wentAway("display"),
    });
    const user = new OwnUser(account, { ...login, ...desktopEnvironment(display, runtimeDir) });
    apps = new Apps(user, log);
    const input = new SettledInput(display.name);
    const displaySize = { width: display.width, height: display.height };
    const settled = { inputSettled: () => input.settled(), clicksPassedOn: () => input.clicksPassedOn() };
    const session = { display: display.name, displaySize, user, runtimeDir, dataDir, ...settled };
    const desktop = new Desktop(session, display, apps, input, options);
    try {
      const bus = desktop.#add(sessionBus(runtimeDir, user), {
        onAway: () => desktop.#apps.wentAway("bus"),
        onUp: () => desktop.#apps.isBack("bus"),
      });
      const managers = display.hasWindowManager ? [] : [desktop.#addWindowManager()];
      await Promise.all([bus, ...managers].map((service) => service.start(signal)));
      return desktop;
    } catch (thrown) {
      await desktop.close();
      throw thrown;
    }
  }

  /** Starts a driver's services, and resolves once all answer; they are started anew when the display or the bus died. */
  async addServices(specs: readonly ServiceSpec[]): Promise<void> {
    const needs = [...this.#shown(), this.#existing("bus")];
    await Promise.all(specs.map((spec) => this.#add(spec, { needs }).start()));
  }

  /**
   * Starts each command line, as a shell reads it, in the session user's home. An app that ends is not started again, only
   * one that went with the display or the bus. One whose program is missing is refused with a SetupError before any starts.
   */
  startApps(commands: readonly string[]): void {
    this.#apps.start(commands);
  }

  /** A service by its name: `display` (if it is ours), `bus`, `window-manager`, and the driver's. */
  service(name: string): RunningService {
    return this.#existing(name);
  }

  /** All services, in the order of their starts. */
  get services(): readonly RunningService[] {
    return [...this.#services.values()];
  }

  /** Stops everything, the last started first, in 1.2 s at most. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#input.close();
    const bus = this.#services.get("bus");
    const shown = [...this.#services.values()].filter((service) => service !== bus && service !== this.#display.server);
    await Promise.all([this.#apps, ...shown].map((part) => part.stop(GRACE_MS.shown)));
    await bus?.stop(GRACE_MS.bus);
    await this.#display.server?.stop(GRACE_MS.display);
  }

  #addWindowManager(): Service {
    const { spec, onLine } = windowManager(this.session.runtimeDir);
    return this.#add(spec, { needs: this.#shown(), onLine, onUp: () => this.#displayIsBack() });
  }

  #displayIsBack(): void {
    this.#input.displayIsBack();
    this.#apps.isBack("display");
  }

  #shown(): Service[] {
    return this.#display.server === undefined ? [] : [this.#display.server];
  }

  #existing(name: string): Service {
    const service = this.#services.get(name);
    if (service === undefined) throw new Error(`the desktop has no service ${name}`);
    return service;
  }

  #add(spec: ServiceSpec, options: Omit<ServiceOptions, "user" | "log">): Service {
    if (this.#services.has(spec.name)) throw new Error(`the desktop has a service ${spec.name} already`);
    if (this.#closed !== undefined) throw new Error("the desktop is closed");
    for (const path of spec.removes ?? []) this.#options.guard?.removes(path);
    const service = new Service(spec, { user: this.session.user, log: this.#options.log, ...options });
    this.#services.set(spec.name, service);
    return service;
  }
}
