import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ServiceSpec, SessionUser } from "../computer/session.js";
import { endUnder } from "./process-group.js";

export function busAddress(runtimeDir: string): string {
  return `unix:path=${join(runtimeDir, "bus")}`;
}

/**
 * The D-Bus session bus, and with it the accessibility bus: the session bus starts that one when it is first asked for, and
 * anew when it died, so no program can find it missing and no two of it race. It counts as up when both answer.
 */
export function sessionBus(runtimeDir: string, user: SessionUser): ServiceSpec {
  offerAccessibility(runtimeDir);
  return {
    name: "bus",
    command: [
      "dbus-daemon",
      "--session",
      "--nofork",
      "--nopidfile",
      "--nosyslog",
      `--address=${busAddress(runtimeDir)}`,
    ],
    removes: [join(runtimeDir, "bus"), join(runtimeDir, "at-spi")],
    async ready(signal) {
      while (!(await accessibilityAnswers(user, signal))) {
        signal.throwIfAborted();
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
  };
}

/**
 * The bus looks here before it looks at what Debian installed. Accessibility is on from the start (browsers and Qt ask), and
 * that is not written to the settings of the account, which may be a person's.
 */
function offerAccessibility(runtimeDir: string): void {
  const folder = join(runtimeDir, "dbus-1", "services");
  mkdirSync(folder, { recursive: true });
  const launcher = "/usr/libexec/at-spi-bus-launcher --launch-immediately --a11y=1";
  writeFileSync(
    join(folder, "org.a11y.Bus.service"),
    `[D-BUS Service]\nName=org.a11y.Bus\nExec=/usr/bin/env GSETTINGS_BACKEND=memory ${launcher}\n`,
  );
}

/** Whether the session bus answers, and with it who starts the accessibility bus. Rejects when it was given up. */
export async function accessibilityAnswers(user: SessionUser, signal: AbortSignal): Promise<boolean> {
  const call = ["--dest=org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus.GetAddress"];
  const args = ["--session", "--print-reply", "--reply-timeout=5000", ...call];
  const how = await endUnder(signal, user.spawn("dbus-send", args, { stdio: "ignore" }));
  signal.throwIfAborted();
  return how === "exit code 0";
}
