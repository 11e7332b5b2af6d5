import { AgentEnvError, messageOf, SetupError } from "../errors.js";
import { ObjectDamaged } from "./object-store.js";

/** An answer whose headers came and whose body didn't, or not all of it. */
export class BodyLost extends Error {
  override readonly name = "BodyLost";
}

/** An answer whose body is not what its checksum says. */
export class BodyChanged extends Error {
  override readonly name = "BodyChanged";
}

interface Failure {
  name?: string;
  code?: string;
  $metadata?: { httpStatusCode?: number };
}

const PASSING_STATUS = new Set([408, 425, 429, 500, 502, 503, 504]);
/** Node's names for a connection that broke, the library's for a try that took too long, S3's for bytes that changed. */
const PASSING = new Set([
  "ECONNRESET",
  "ECONNREFUSED",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "TimeoutError",
  "AbortError",
  "BodyLost",
  "BodyChanged",
  "BadDigest",
  "XAmzContentSHA256Mismatch",
  "RequestTimeout",
  "RequestTimeTooSkewed",
  "SlowDown",
]);

/** Whether the same request may succeed later by itself. Every request of a store may be sent twice. */
export function mayPass(thrown: unknown): boolean {
  const { name = "", code = "" } = thrown as Failure;
  const status = statusOf(thrown);
  return PASSING.has(name) || PASSING.has(code) || (status !== undefined && PASSING_STATUS.has(status));
}

/** An object that isn't there. A bucket that isn't there is no absence but a mistake. */
export function isAbsent(thrown: unknown): boolean {
  return statusOf(thrown) === 404 && (thrown as Failure).name !== "NoSuchBucket";
}

function statusOf(thrown: unknown): number | undefined {
  return (thrown as Failure).$metadata?.httpStatusCode;
}

interface Asked {
  store: string;
  bucket: string;
  /** To be read after the store: "can't be listed". */
  what: string;
  tries: number;
  /** Whether a failed request may have had its effect all the same. */
  applied: "no" | "unknown";
}

/** The failure as whoever asked should see it, by the answer's status and code. */
export function storeFailure(cause: unknown, { store, bucket, what, tries, applied }: Asked): Error {
  const { name = "" } = cause as Failure;
  const status = statusOf(cause);
  // The library's word for a try whose time was up.
  const said = name === "AbortError" ? "no answer in time" : `${status ?? ""} ${name} ${messageOf(cause)}`.trim();
  const message = `${store} ${what}: ${said}`;
  const setup = (hint: string, instead = message) => new SetupError(instead, { hint, cause });
  if (cause instanceof BodyChanged) {
    return new ObjectDamaged(message, { hint: "the object was damaged where it lies; put it again", cause });
  }
  if (name === "NoSuchBucket")
    return setup("make the bucket, or name another store", `${store} has no bucket ${bucket}`);
  if (name === "CredentialsProviderError" || name === "CredentialsError") {
    return setup(
      "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
      `${store}: there are no credentials`,
    );
  }
  if (status === 507) return setup("make room there", `${store} is full`);
  if (status === 401 || status === 403) return setup("these credentials may not do that, or are not the store's");
  if (status === 301 || name === "AuthorizationHeaderMalformed") {
    return setup("the bucket is in another region: add ?region=… to the store's URL");
  }
  if (status === 400 || status === 501) {
    return setup("a store that refuses the checksum headers of AWS's library takes ?checksums=md5 on its URL");
  }
  if ((cause as Failure).code === "ENOTFOUND") return setup("is the endpoint's name right?");
  return new AgentEnvError("device_unavailable", message, {
    hint: `asked ${tries} times; try again when the store answers`,
    cause,
    applied,
  });
}
