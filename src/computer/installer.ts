/** How a driver's program gets onto a machine; a driver class that needs one has it as its static `installer`. */
export interface DriverInstaller {
  /** The version that is installed. */
  readonly version: string;
  /**
   * Installs it below `<dataDir>/drivers/`, checked, whole or not at all. What is installed already and right is left alone.
   * Throws a SetupError for anything that isn't as it should be.
   */
  install(options: InstallRequest): Promise<{ readonly folder: string; readonly fresh: boolean }>;
  /** What is different from what it should be, a line a difference; empty when all is right. */
  verify(dataDir: string): Promise<string[]>;
}

export interface InstallRequest {
  readonly dataDir: string;
  /** A file to install from; then nothing is downloaded. */
  readonly from?: string;
  readonly onProgress?: (line: string) => void;
  readonly signal?: AbortSignal;
}
