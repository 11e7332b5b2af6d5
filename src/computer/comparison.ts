/** A driver whose program is an MCP server of its own: what it serves and what we serve can be compared. */
export interface DriverComparison {
  /** Compares both on one running computer. Throws a SetupError where one of them can't be asked. */
  compare(request: ComparisonRequest): Promise<ComparisonReport>;
}

export interface ComparisonRequest {
  /** Where the environment is served. */
  readonly url: string;
  /** A bearer token with the scope `framework`, where the environment asks for one. */
  readonly token?: string;
  /** Where the driver's program is installed. */
  readonly dataDir: string;
  readonly onProgress?: (line: string) => void;
}

export interface ComparisonReport {
  /** How many answers were compared. */
  readonly compared: number;
  /** A line a difference. */
  readonly differences: readonly string[];
}
