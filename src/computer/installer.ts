/** A driver's program as it is pinned: size in bytes, digest in hex. */
export interface PinnedProgram {
  readonly size: number;
  readonly sha256: string;
}

/** How a driver's program gets onto a machine; a driver class that needs one has it as its static `installer`. */
export interface DriverInstaller {
  /** The version that is installed. */
  readonly version: string;
  /** What is run, as it is pinned for each platform, such as `linux/amd64`. */
  readonly programs: Readonly<Record<string, PinnedProgram>>;
  /** Where it lies once it is installed. */
  programFile(dataDir: string): string;
  /**
   * Installs it below `<dataDir>/drivers/`, checked, whole or not at all. What is installed already and right is left alone.
   * Throws a SetupError for anything that isn't as it should be.
   */
  install(options: InstallRequest): Promise<{ readonly folder: string; readonly fresh: boolean }>;
  /** What is different from what it should be, a line a difference; empty when all is right. */
  verify(dataDir: string): Promise<string[]>;
  /** Pins another version in the place of this one; for a driver whose program is pinned. Throws a SetupError. */
  pin?(request: PinRequest): Promise<PinnedVersion>;
}

export interface PinRequest {
  readonly version: string;
  readonly onProgress?: (line: string) => void;
  readonly signal?: AbortSignal;
}

export interface PinnedVersion {
  /** The file that says what is pinned now. */
  readonly file: string;
  /** What is different from before, a line a change; empty when nothing is. */
  readonly changes: readonly string[];
}

export interface InstallRequest {
  readonly dataDir: string;
  /** A file to install from; then nothing is downloaded. */
  readonly from?: string;
  /** The program itself, which somebody has kept; then nothing is downloaded. */
  readonly program?: string;
  readonly onProgress?: (line: string) => void;
  readonly signal?: AbortSignal;
}
