import { AgentEnvError } from "../errors.js";
import { ToolAccessRequest } from "../protocol/tool.js";
import { extensionMethod, type ServedExtension } from "./extension.js";
import type { ToolAccess } from "./tool-access.js";

/** The extensions that change tool access; `changed` is called after each change. */
export function toolAccessExtensions(access: ToolAccess, changed: () => void): ServedExtension[] {
  const one = (action: "disable" | "enable", description: string): ServedExtension => ({
    uri: `urn:agentenv:${action}-tool/v1`,
    description,
    methods: [
      extensionMethod({
        name: action,
        endpoint: `/tools/${action}`,
        method: "POST",
        request: ToolAccessRequest,
        handle: (request) => {
          const change = access.change(request, action === "disable");
          if (change === undefined) {
            throw new AgentEnvError("limit_exceeded", "there are too many tool access rules", {
              hint: 'clear them with {"role": "*", "tools": "*"}',
            });
          }
          changed();
          return change;
        },
      }),
    ],
  });
  return [
    one("disable", "Hides tools from a role and refuses their calls."),
    one("enable", "Shows tools to a role again."),
  ];
}
