import { createHash } from "node:crypto";
import { openAsBlob } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Dispatcher, FormData, interceptors, request } from "undici";
import { z } from "zod";
import { AgentEnvError } from "../errors.js";
import { RelativePath } from "../protocol/data-plane.js";
import { publicInternet } from "./public-internet.js";

/** The most that a plain URL may bring; a grant says its own limit. */
export const MAX_URL_BYTES = 1 << 30;
/** How long a connection may stand still. */
const IDLE_MS = 60_000;
const TRIES = 3;
const MAX_REDIRECTS = 5;

const HttpsUrl = z.string().refine(isHttps, { error: "an absolute https URL" });
const Expiry = z.iso.datetime({ offset: true });
const Headers = z.record(z.string(), z.string()).nullish();

/** A grant to read one object, under the marker in a file part's metadata. Source: AgentEnv protocol 1.0, data-objects/v1. */
export const ReadGrant = z.strictObject({
  media_type: z.string(),
  max_bytes: z.int().positive(),
  size_bytes: z.int().min(0).nullish(),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullish(),
  read: z.strictObject({ kind: z.literal("http-get"), url: HttpsUrl, expires_at: Expiry, headers: Headers }),
});
/** A grant to read one object. */
export type ReadGrant = z.infer<typeof ReadGrant>;

/** A grant to upload what `data/get` answers, below one path of a store. Source: AgentEnv protocol 1.0, data-objects/v1. */
export const WriteGrant = z.strictObject({
  root_path: RelativePath,
  expires_at: Expiry,
  max_objects: z.int().positive(),
  max_object_bytes: z.int().positive(),
  max_total_bytes: z.int().positive(),
  write: z.strictObject({
    kind: z.literal("http-post-policy"),
    url: HttpsUrl,
    fields: z.record(z.string(), z.string()),
    path_field: z.string().min(1),
    file_field: z.string().min(1),
    headers: Headers,
  }),
});
/** A grant to upload objects. */
export type WriteGrant = z.infer<typeof WriteGrant>;

/**
 * The bytes at an https URL, up to 1 GiB, from no private address whichever way leads there. Messages name no URL, since one
 * may hold a secret. Throws `invalid_argument` for a URL that is refused and `internal` for one that can't be had.
 */
export async function* download(
  url: string,
  dispatcher: Dispatcher = publicInternet(),
  maxBytes = MAX_URL_BYTES,
): AsyncGenerator<Buffer> {
  if (!isHttps(url)) throw new AgentEnvError("invalid_argument", "a file's uri is an https URL");
  const followed = dispatcher.compose(interceptors.redirect({ maxRedirections: MAX_REDIRECTS }));
  yield* limited(await get(url, {}, followed), maxBytes);
}

/** The bytes that a grant lets read, checked against the size and the digest that it names. */
export async function* downloadGranted(
  grant: ReadGrant,
  dispatcher: Dispatcher = publicInternet(),
): AsyncGenerator<Buffer> {
  checkUnexpired(grant.read.expires_at);
  const headers = { ...grant.read.headers, "accept-encoding": "identity" };
  const digest = createHash("sha256");
  let size = 0;
  for await (const chunk of limited(await get(grant.read.url, headers, dispatcher), grant.max_bytes)) {
    digest.update(chunk);
    size += chunk.length;
    yield chunk;
  }
  if (typeof grant.size_bytes === "number" && size !== grant.size_bytes) {
    throw new AgentEnvError("invalid_argument", `the granted object has ${size} bytes, not ${grant.size_bytes}`);
  }
  if (typeof grant.sha256 === "string" && digest.digest("hex") !== grant.sha256) {
    throw new AgentEnvError("invalid_argument", "the granted object has another sha256 than its grant says");
  }
}

/** Uploads files one by one under a grant, within its limits. Throws `limit_exceeded` before a file that would pass them. */
export class GrantedUpload {
  #objects = 0;
  #bytes = 0;

  constructor(
    private readonly grant: WriteGrant,
    private readonly dispatcher: Dispatcher = publicInternet(),
  ) {}

  /** `path` is relative to the grant's root; `source` the path of a file that is read as it is uploaded, or its content. */
  async upload(path: string, source: string | Blob): Promise<void> {
    const { write } = this.grant;
    checkUnexpired(this.grant.expires_at);
    const content = typeof source === "string" ? await openAsBlob(source) : source;
    const passes =
      content.size > this.grant.max_object_bytes ||
      this.#objects + 1 > this.grant.max_objects ||
      this.#bytes + content.size > this.grant.max_total_bytes;
    if (passes) throw new AgentEnvError("limit_exceeded", `uploading ${path} would pass the limits of the grant`);
    const response = await tried(() => {
      const body = new FormData();
      const fields = { "Content-Type": "application/octet-stream", ...write.fields };
      for (const [name, value] of Object.entries(fields)) body.append(name, value);
      body.set(write.path_field, `${this.grant.root_path}/${path}`);
      // A store reads no field behind the file.
      body.append(write.file_field, content, path.split("/").at(-1) ?? path);
      const headers = { ...write.headers };
      return request(write.url, { method: "POST", headers, body, dispatcher: this.dispatcher, ...TIMES });
    });
    await response.body.dump();
    this.#objects += 1;
    this.#bytes += content.size;
  }
}

const TIMES = { headersTimeout: IDLE_MS, bodyTimeout: IDLE_MS };

function get(url: string, headers: Record<string, string>, dispatcher: Dispatcher): Promise<Dispatcher.ResponseData> {
  return tried(() => request(url, { method: "GET", headers, dispatcher, ...TIMES }));
}

/** A response that was granted: busy stores and broken connections are tried again, which a read or a whole object allows. */
async function tried(send: () => Promise<Dispatcher.ResponseData>): Promise<Dispatcher.ResponseData> {
  for (let tries = 1; ; tries += 1) {
    const outcome = await send().catch((thrown: unknown) => ({ thrown }));
    if (!("thrown" in outcome)) {
      const { statusCode, body } = outcome;
      if (statusCode >= 200 && statusCode < 300) return outcome;
      await body.dump();
      const again = statusCode >= 500 || statusCode === 408 || statusCode === 429;
      if (!again || tries === TRIES) {
        throw new AgentEnvError("internal", `the file's server answered ${statusCode}`, { applied: "no" });
      }
    } else {
      if (outcome.thrown instanceof AgentEnvError) throw outcome.thrown;
      if (tries === TRIES) {
        throw new AgentEnvError("internal", "the file's server can't be reached", {
          applied: "no",
          cause: outcome.thrown,
        });
      }
    }
    await sleep(2 ** (tries - 1) * 500 * (1 + Math.random()));
  }
}

async function* limited({ body, headers }: Dispatcher.ResponseData, most: number): AsyncGenerator<Buffer> {
  const tooLarge = () => new AgentEnvError("limit_exceeded", `the file is larger than ${most} bytes`);
  let size = 0;
  try {
    if (Number(headers["content-length"] ?? 0) > most) throw tooLarge();
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > most) throw tooLarge();
      yield chunk;
    }
  } finally {
    body.on("error", () => {}).destroy();
  }
}

function checkUnexpired(expiresAt: string): void {
  if (Date.parse(expiresAt) <= Date.now()) throw new AgentEnvError("invalid_argument", "the grant has expired");
}

function isHttps(url: string): boolean {
  return URL.canParse(url) && new URL(url).protocol === "https:";
}
