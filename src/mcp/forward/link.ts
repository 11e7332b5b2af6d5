/** A connection to another MCP server, which carries messages as JSON text. */
export interface UpstreamLink {
  /** Whether the connection tells which request a message comes with. */
  readonly relates: boolean;
  /**
   * Sends one message. Throws, or rejects with, a NotSent when it surely never reached the server; answers nothing where there
   * is nothing to wait for. For a request (`id`), a connection of requests of their own tells what comes back of it through
   * `events.message`.
   */
  send(message: string, id?: number): Promise<void> | undefined;
  /** Called once the server has answered `initialize`, with the revision that both speak. */
  initialized?(protocolVersion: string): void;
  /** Called once the session can be used. */
  ready?(): void;
  /** Lets a request go that nobody waits for any more. */
  forget?(id: number): void;
  /** Ends the connection, and what was started for it. Idempotent. */
  close(): Promise<void>;
}

export interface LinkEvents {
  /** A message came; `related` is the request with whose answer it came, where the connection tells. */
  message(text: string, related?: number): void;
  /** The request can't be answered any more, though the connection lives. */
  lost(id: number, reason: Error): void;
  /** The connection is gone and takes nothing any more. */
  closed(reason: Error): void;
}

/** The server surely didn't get a message: it wasn't there, or refused it whole. */
export class NotSent extends Error {
  override readonly name = "NotSent";
}
