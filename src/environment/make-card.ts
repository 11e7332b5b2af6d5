import {
  type Card,
  DATA_OPERATIONS,
  DATA_PLANE_PATH,
  extensionEndpoint,
  MCP_PATH,
  PROTOCOL_VERSION,
} from "../protocol/card.js";
import { parseExact } from "../protocol/json-text.js";
import type { ToolDefinition } from "../protocol/tool.js";
import type { DataHandlers } from "./collect.js";
import type { ExtensionMethod, ServedExtension } from "./extension.js";
import { jsonSchemaOf } from "./schema.js";
import type { ServedTool } from "./served-tool.js";

/**
 * An environment's card without children. JSON.stringify writes it with the numbers of other servers' schemas as they wrote
 * them.
 */
export function makeCard(
  name: string,
  tools: readonly ServedTool[],
  extensions: readonly ServedExtension[],
  data: DataHandlers,
): Card {
  return {
    name,
    protocolVersion: PROTOCOL_VERSION,
    url: DATA_PLANE_PATH,
    preferredTransport: "JSONRPC",
    additionalInterfaces: [{ url: MCP_PATH, transport: "mcp" }],
    capabilities: {
      extensions: extensions.map((extension) => ({
        uri: extension.uri,
        description: extension.description,
        params: cardParams(extension),
        required: false,
      })),
      tools: tools.map(cardTool),
      operations: DATA_OPERATIONS.filter((operation) => data[operation] !== undefined),
    },
    children_environments: null,
  };
}

function cardTool({ definition, definitionText }: ServedTool) {
  const { name, description, inputSchema } =
    definitionText === undefined ? definition : (parseExact(definitionText) as ToolDefinition);
  return { name, ...(description === undefined ? {} : { description }), inputSchema };
}

/** Where an extension's method is served. */
export function endpointOf(extension: ServedExtension, method: ExtensionMethod): string {
  return method.endpoint ?? extensionEndpoint(extension.uri, method.op);
}

/** An extension as the card declares it. */
function cardParams(extension: ServedExtension) {
  const features = extension.params?.() ?? {};
  if (extension.methods.length === 0) return features;
  const unnamed = extension.methods.find((method) => method.op === undefined);
  const methods = Object.fromEntries(
    extension.methods.map((method) => [
      method.name,
      {
        method: method.method,
        ...(method === unnamed ? {} : { endpoint: endpointOf(extension, method) }),
        request: jsonSchemaOf(method.request, "input"),
      },
    ]),
  );
  return { ...features, ...(unnamed === undefined ? {} : { endpoint: endpointOf(extension, unnamed) }), methods };
}
