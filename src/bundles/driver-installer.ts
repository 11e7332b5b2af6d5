import type { DriverInstaller } from "../computer/installer.js";
import { packageRoot } from "../package-root.js";
import { driverModule, loadClass } from "./load-class.js";

/** How the program of a driver gets onto a machine, undefined for a driver that needs none. Throws a SetupError for an alias that there isn't. */
export async function driverInstaller(alias: string): Promise<DriverInstaller | undefined> {
  const found = await loadClass(packageRoot, driverModule(alias));
  return (found as { installer?: DriverInstaller }).installer;
}
