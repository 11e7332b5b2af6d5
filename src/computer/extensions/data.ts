import type { ServedExtension } from "../../environment/extension.js";
import { DATA_OBJECTS_URN, INTAKE_URN, type IntakeFormat } from "../../protocol/data-plane.js";

const ADD: IntakeFormat[] = [{ part: "file", format: "file-tree", load: "additive" }];
const GET: IntakeFormat[] = [{ part: "file", format: "file-tree" }];

/** What the data plane of a computer takes and gives: declared on the card, with no methods. */
export function dataExtensions(): ServedExtension[] {
  return [
    {
      uri: INTAKE_URN,
      description: "data/add writes files into the session user's home, and data/get answers those of the data paths.",
      methods: [],
      params: () => ({ add: ADD, get: GET }),
    },
    {
      uri: DATA_OBJECTS_URN,
      description: "A file part's metadata names its path in the home; data/get takes a write_namespace to upload to.",
      methods: [],
    },
  ];
}
