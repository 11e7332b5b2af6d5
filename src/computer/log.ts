/** Where the computer says what no caller is told; pino's loggers fit. */
export interface ComputerLog {
  debug(details: object, message: string): void;
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}
