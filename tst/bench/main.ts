import { benchCuaDriver } from "./cua-driver.js";
import { benchForwarding } from "./forwarding.js";
import { reached } from "./measure.js";
import { benchReference } from "./reference.js";
import { benchSkills } from "./skills.js";
import { printRows } from "./table.js";

/** `npm run bench -- [SECTION…]`: prints tables of times and of ratios measured in the same run. */
const SECTIONS = {
  "cua-driver": benchCuaDriver,
  reference: benchReference,
  forwarding: benchForwarding,
  skills: benchSkills,
};

const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
const unknown = wanted.filter((name) => !(name in SECTIONS));
if (unknown.length > 0) {
  console.error(`there is no section ${unknown.join(", ")}; there are ${Object.keys(SECTIONS).join(", ")}`);
  process.exit(2);
}

let missed = 0;
for (const [name, bench] of Object.entries(SECTIONS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  for (const { title, rows } of await bench()) {
    printRows(title, rows);
    missed += rows.filter((row) => reached(row) === false).length;
  }
}
console.log(missed === 0 ? "\nevery ratio was reached" : `\nratios missed: ${missed}`);
