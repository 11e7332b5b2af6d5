import type { KnownFault } from "../../src/computer/skill.js";

export const KNOWN_FAULTS: readonly KnownFault[] = [];
