import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { dataFolder } from "./data-folder.js";

/** What a command's `--store` says of itself. */
export const STORE_OPTION = "file:///FOLDER or s3://BUCKET/PREFIX; else AGENTENV_STORE, else below the data folder";

/** The URL of the store to use: the one that was named, else the variable AGENTENV_STORE's, else the data folder's own. */
export function storeUrl(named: string | undefined): string {
  return named ?? (process.env.AGENTENV_STORE || pathToFileURL(join(dataFolder(), "store")).href);
}
