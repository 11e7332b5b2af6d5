import { type Card, extensionEndpoint } from "../protocol/card.js";

interface Methods {
  [name: string]: { endpoint?: string };
}

/** An environment's card as it is read through a gateway: each of its endpoints below `prefix`, its children's too. */
export function childCard(card: Card, name: string, prefix: string): Card {
  const below = (path: string) => (path.startsWith("/") ? prefix + path : path);
  return {
    ...card,
    name,
    url: below(card.url),
    additionalInterfaces: card.additionalInterfaces.map((each) => ({ ...each, url: below(each.url) })),
    capabilities: {
      ...card.capabilities,
      extensions: (card.capabilities.extensions ?? []).map((extension) => {
        const { endpoint, methods, ...features } = (extension.params ?? {}) as { endpoint?: string; methods?: Methods };
        const params = {
          ...features,
          ...(endpoint === undefined ? {} : { endpoint: below(endpoint) }),
          ...(methods === undefined ? {} : { methods: methodsBelow(methods, extension.uri, endpoint, below) }),
        };
        return { ...extension, params };
      }),
    },
    children_environments: card.children_environments?.map((child) => childCard(child, child.name, prefix)) ?? null,
  };
}

/** Says where a method is even where it lay at its usual place, which is no longer that. */
function methodsBelow(methods: Methods, uri: string, endpoint: string | undefined, below: (path: string) => string) {
  return Object.fromEntries(
    Object.entries(methods).map(([name, method]) => {
      if (method.endpoint === undefined && endpoint !== undefined) return [name, method];
      return [name, { ...method, endpoint: below(method.endpoint ?? extensionEndpoint(uri, name)) }];
    }),
  );
}
