import type { Check } from "../check.js";
import { callerChecks } from "./callers.js";
import { cardChecks } from "./card.js";
import { clickChecks } from "./clicks.js";
import { dataChecks } from "./data.js";
import { displayChecks } from "./display.js";
import { execChecks } from "./exec.js";
import { frameChecks } from "./frames.js";
import { geometryChecks } from "./geometry.js";
import { heldKeyChecks } from "./held-keys.js";
import { keyboardChecks } from "./keyboard.js";
import { leaseChecks } from "./leases.js";
import { motionChecks } from "./motion.js";
import { pointerChecks } from "./pointer.js";
import { readyChecks } from "./ready.js";
import { refusalChecks } from "./refusals.js";
import { skillChecks } from "./skill.js";
import { spacesChecks } from "./spaces.js";
import { toolAccessChecks } from "./tool-access.js";
import { typingChecks } from "./typing.js";
import { userChecks } from "./user.js";

/** All checks. Those of level basic run first, in this order, and then the others. */
export const CHECKS: readonly Check[] = [
  ...readyChecks,
  ...cardChecks,
  ...frameChecks,
  ...refusalChecks,
  ...displayChecks,
  ...spacesChecks,
  ...keyboardChecks,
  ...execChecks,
  ...dataChecks,
  ...skillChecks,
  ...toolAccessChecks,
  ...pointerChecks,
  ...leaseChecks,
  ...userChecks,
  ...geometryChecks,
  ...clickChecks,
  ...callerChecks,
  ...typingChecks,
  ...heldKeyChecks,
  ...motionChecks,
];
