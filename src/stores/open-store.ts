import { isAbsolute } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { closest } from "../closest.js";
import { SetupError } from "../errors.js";
import { FolderStore } from "./folder-store.js";
import type { ObjectStore } from "./object-store.js";
import type { RetryPolicy } from "./retry.js";
import { type S3Location, S3Store } from "./s3-store.js";

const FORMS = "file:///FOLDER or s3://BUCKET/PREFIX?endpoint=…&region=…&path-style=true|false&checksums=default|md5";
const S3_SETTINGS = ["endpoint", "region", "path-style", "checksums"];

/** Opens the store that a URL names. Asks it nothing yet. Throws SetupError. */
export async function openStore(url: string, policy?: RetryPolicy): Promise<ObjectStore> {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  switch (parsed?.protocol) {
    case "file:":
      return openFolder(parsed, url);
    case "s3:":
      return S3Store.open(parsed.href, s3Location(parsed), policy);
    default:
      throw new SetupError(`${JSON.stringify(url)} is no store`, {
        hint: isAbsolute(url) ? `write it as ${pathToFileURL(url).href}` : `a store is ${FORMS}`,
      });
  }
}

function openFolder(url: URL, given: string): FolderStore {
  const path = decoded(url.pathname.replaceAll(/%2f/gi, "%00"));
  // Without the slashes it would be read as one of the root's folders, where one beside the person was meant.
  if (!/^file:\/\/\//i.test(given) || url.search !== "" || url.hash !== "" || path === undefined) {
    throw new SetupError(`${given} is no folder's URL`, {
      hint: "it has three slashes and nothing behind the path: file:///var/lib/store",
    });
  }
  return new FolderStore(fileURLToPath(url).replace(/(?<=.)\/+$/, ""));
}

/** What a URL's path says, undefined where that is no path. */
function decoded(path: string): string | undefined {
  try {
    const text = decodeURIComponent(path);
    return /\p{Cc}/u.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

function s3Location(url: URL): S3Location {
  const refuse = (what: string, hint = `a store is ${FORMS}`) => new SetupError(`the store's URL ${what}`, { hint });
  if (url.username !== "" || url.password !== "") {
    throw refuse("holds credentials", "they are read from where AWS's tools read them, such as AWS_ACCESS_KEY_ID");
  }
  if (url.port !== "" || !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.hostname)) {
    throw refuse(`names no bucket: ${url.host === "" ? url.href : url.host}`);
  }
  for (const key of url.searchParams.keys()) {
    if (S3_SETTINGS.includes(key)) continue;
    const near = closest(key, S3_SETTINGS);
    throw refuse(`has an unknown setting ${key}${near === undefined ? "" : `, did you mean ${near}?`}`);
  }
  const endpoint = url.searchParams.get("endpoint");
  if (endpoint !== null && !/^https?:\/\/[^@]+$/.test(endpoint)) {
    throw refuse("has an endpoint that is no http or https URL", "such as ?endpoint=http://127.0.0.1:9000");
  }
  const prefix = decoded(url.pathname)?.replace(/^\/+|\/+$/g, "");
  if (prefix === undefined || prefix.includes("//") || url.hash !== "") throw refuse("has a prefix that can't be one");
  const pathStyle = choice(url, "path-style", ["true", "false"], refuse);
  const region = url.searchParams.get("region");
  return {
    bucket: url.hostname,
    prefix,
    checksums: choice(url, "checksums", ["default", "md5"], refuse) ?? "default",
    ...(endpoint === null ? {} : { endpoint }),
    ...(region === null ? {} : { region }),
    ...(pathStyle === undefined ? {} : { pathStyle: pathStyle === "true" }),
  };
}

function choice<T extends string>(
  url: URL,
  setting: string,
  allowed: readonly T[],
  refuse: (what: string, hint: string) => SetupError,
): T | undefined {
  const given = url.searchParams.get(setting);
  if (given === null) return undefined;
  const found = allowed.find((each) => each === given);
  if (found === undefined) throw refuse(`has ${setting}=${given}`, `it is ${allowed.join(" or ")}`);
  return found;
}
