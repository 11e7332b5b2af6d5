import { POINTER_URN } from "../../protocol/computer.js";
import type { BasicCheck } from "../check.js";

/** P8: leases of a pointer. The protocol names them and doesn't say yet how they are taken. */
export const leaseChecks: BasicCheck[] = [
  {
    id: "P8",
    name: "a lease keeps others' input away",
    level: "basic",
    unless: (driver) => ("leasing" in driver.params(POINTER_URN) ? undefined : "the driver declares no leasing"),
    unverified: "the protocol doesn't say yet how a lease is taken",
    async run() {},
  },
];
