import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { ForwardedCall, ForwardedServer, ListKind } from "../environment/forwarded-server.js";
import { RawError, RawJson } from "../protocol/raw-json.js";
import type { JsonObject } from "../protocol/tool.js";
import { CallPeer } from "./call-peer.js";
import type { McpRequest } from "./own-requests.js";
import { invalid, rpcErrorOf } from "./rpc-error.js";
import type { Extra, McpSession, Params } from "./session.js";
import type { RequestSource } from "./session-transport.js";

/** Who a request of a session comes from, and how to speak to the client meanwhile. */
export interface SessionCall extends ForwardedCall {
  readonly role: string | undefined;
  readonly client: CallPeer;
}

/** A request of this session as the servers behind see it. */
export function callOf(session: McpSession, request: McpRequest): SessionCall {
  return { ...session.callerOf(request), signal: request.signal, client: new CallPeer(session, request) };
}

/** Sends a request on as it came, and answers what comes back as it came. */
export function forward(session: McpSession, server: ForwardedServer, request: McpRequest): Promise<RawJson> {
  const call = callOf(session, request);
  return server.request(request.method, call.client.paramsText, call);
}

/** Leaves it to the one server behind to say what is wrong with a request, or says it where there is none. */
export function malformed(session: McpSession, request: McpRequest, message: string): Promise<RawJson> {
  const { only } = session.application.forwarding;
  if (only === undefined) throw invalid(message);
  return forward(session, only, request);
}

/** A list of our own with what the servers behind list to this caller. */
export async function joinedList(
  session: McpSession,
  kind: Exclude<ListKind, "tools">,
  request: McpRequest,
  own: readonly object[],
): Promise<object> {
  const { forwarding } = session.application;
  if (forwarding.empty) return { [kind]: own };
  const lists = await forwarding.lists(kind, callOf(session, request));
  if (lists instanceof RawError) return own.length === 0 ? lists : { [kind]: own };
  const [only] = lists;
  if (own.length === 0 && lists.length === 1 && only?.whole !== undefined) return new RawJson(only.whole);
  const items = [
    ...own.map((each) => JSON.stringify(each)),
    ...lists.flatMap(({ items }) => items.map(({ text }) => text)),
  ];
  const parts = [`"${kind}":[${items.join(",")}]`, ...lists.map(({ rest }) => rest)];
  return new RawJson(`{${parts.filter((part) => part !== "").join(",")}}`);
}

/** Passes on what nobody here answers, where one server is forwarded alone. */
export function serveUnknown(session: McpSession, protocol: Server): void {
  const { only } = session.application.forwarding;
  if (only === undefined) return;
  protocol.fallbackRequestHandler = async ({ method, params = {} }, { requestId, signal, requestInfo }: Extra) => {
    const source = requestInfo as unknown as RequestSource;
    try {
      const own = { method, params: params as Params, id: requestId, signal, source };
      return (await forward(session, only, own)) as unknown as JsonObject;
    } catch (thrown) {
      throw rpcErrorOf(thrown);
    }
  };
  session.transport.onunknown = (message, source) => {
    try {
      const { caller } = session.callerOf({ params: message.params ?? {}, source });
      only.notify(source.text, caller);
    } catch (thrown) {
      // A notification has no answer that could say so.
      session.transport.onerror?.(thrown as Error);
    }
  };
}
