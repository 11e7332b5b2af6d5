import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ServiceSpec } from "../computer/session.js";
import { findProgram } from "./programs.js";

const MENU = [
  ["Terminal", ["xterm"]],
  ["Files", ["thunar", "pcmanfm"]],
] as const;

/** What openbox writes once it manages windows. Its property on the root window comes earlier, and a window in between is lost. */
const RUNNING = "the window manager is running";

/**
 * The window manager, set up so that it takes no key and no click with a modifier away from an agent. `onLine` has to be given
 * what it writes.
 */
export function windowManager(runtimeDir: string): { spec: ServiceSpec; onLine(line: string): void } {
  const folder = join(runtimeDir, "openbox");
  mkdirSync(folder, { recursive: true });
  const menu = join(folder, "menu.xml");
  const config = join(folder, "rc.xml");
  writeFileSync(menu, menuXml());
  writeFileSync(config, configXml(menu));
  let running = Promise.withResolvers<void>();
  return {
    spec: {
      name: "window-manager",
      get command(): [string, ...string[]] {
        running = Promise.withResolvers();
        return ["openbox", "--sm-disable", "--config-file", config, "--startup", `echo "${RUNNING}"`];
      },
      ready: () => running.promise,
    },
    onLine: (line) => {
      if (line === RUNNING) running.resolve();
    },
  };
}

function menuXml(): string {
  const items = MENU.flatMap(([label, programs]) => {
    const program = programs.find((name) => findProgram(name) !== undefined);
    // A session of its own: a restart of the window manager doesn't end what its menu started.
    const execute = `<execute>setsid --fork ${program}</execute>`;
    return program ? [`<item label="${label}"><action name="Execute">${execute}</action></item>`] : [];
  });
  return `<?xml version="1.0" encoding="UTF-8"?>
<openbox_menu xmlns="http://openbox.org/">
<menu id="root-menu" label="Desktop">${items.join("")}<menu id="client-list-combined-menu"/></menu>
</openbox_menu>
`;
}

function bind(button: string, action: string, ...actions: readonly string[]): string {
  const list = actions.map((name) => (name.startsWith("<") ? name : `<action name="${name}"/>`));
  return `<mousebind button="${button}" action="${action}">${list.join("")}</mousebind>`;
}

function context(names: string, ...binds: readonly string[]): string {
  return `<context name="${names}">${binds.join("")}</context>`;
}

/**
 * A new window takes the focus whatever was typed elsewhere before: who starts a program means to use it. Buttons alone, on a
 * window's own frame and on the desktop; no key at all. What isn't bound reaches the program. Windows that were minimised are
 * in a list on the desktop: under the middle button, and in the menu under the right one.
 */
function configXml(menu: string): string {
  const showRootMenu = `<action name="ShowMenu"><menu>root-menu</menu></action>`;
  const showWindows = `<action name="ShowMenu"><menu>client-list-combined-menu</menu></action>`;
  const showWindowMenu = `<action name="ShowMenu"><menu>client-menu</menu></action>`;
  const raise = ["Focus", "Raise"];
  const resize = (edge: string) => `<action name="Resize"><edge>${edge}</edge></action>`;
  const edge = (name: string, side: string) =>
    context(name, bind("Left", "Press", ...raise), bind("Left", "Drag", resize(side)));
  const button = (name: string, action: string) =>
    context(name, bind("Left", "Press", ...raise), bind("Left", "Click", action));
  return `<?xml version="1.0" encoding="UTF-8"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
<resistance><strength>0</strength><screen_edge_strength>0</screen_edge_strength></resistance>
<focus><focusNew>yes</focusNew><followMouse>no</followMouse><focusLast>yes</focusLast></focus>
<placement><policy>Smart</policy><center>yes</center></placement>
<theme><name>Clearlooks</name><titleLayout>NLIMC</titleLayout><animateIconify>no</animateIconify></theme>
<desktops><number>1</number><popupTime>0</popupTime></desktops>
<keyboard></keyboard>
<mouse>
<dragThreshold>1</dragThreshold><doubleClickTime>500</doubleClickTime><screenEdgeWarpTime>0</screenEdgeWarpTime>
${context("Client", ...["Left", "Middle", "Right"].map((name) => bind(name, "Press", ...raise)))}
${context("Titlebar", bind("Left", "Press", ...raise), bind("Left", "Drag", "Move"), bind("Left", "DoubleClick", "ToggleMaximize"), bind("Right", "Press", ...raise, showWindowMenu))}
${edge("Top", "top")}${edge("Bottom", "bottom")}${edge("Left", "left")}${edge("Right", "right")}
${edge("TLCorner", "topleft")}${edge("TRCorner", "topright")}${edge("BLCorner", "bottomleft")}${edge("BRCorner", "bottomright")}
${button("Icon", showWindowMenu)}${button("Iconify", "Iconify")}${button("Maximize", "ToggleMaximize")}${button("Close", "Close")}
${context("Desktop", bind("Left", "Press", ...raise), bind("Middle", "Press", showWindows), bind("Right", "Press", showRootMenu))}
${context("Root", bind("Middle", "Press", showWindows), bind("Right", "Press", showRootMenu))}
</mouse>
<applications><application class="*"><focus>yes</focus></application></applications>
<menu><file>${menu}</file><hideDelay>200</hideDelay><middle>no</middle><submenuShowDelay>100</submenuShowDelay><manageDesktops>no</manageDesktops></menu>
</openbox_config>
`;
}
