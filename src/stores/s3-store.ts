import { hash } from "node:crypto";
import { addAbortSignal, type Readable } from "node:stream";
import type { S3Client, S3ClientConfig } from "@aws-sdk/client-s3";
import { messageOf, SetupError } from "../errors.js";
import { checkKey, checkPrefix, type ObjectInfo, type ObjectPage, type ObjectStore } from "./object-store.js";
import { type RetryPolicy, withRetries } from "./retry.js";
import { BodyChanged, BodyLost, isAbsent, mayPass, storeFailure } from "./s3-failures.js";

const CONNECT_MS = 5_000;

export interface S3Location {
  readonly bucket: string;
  /** Without slashes at its ends; "" for the whole bucket. */
  readonly prefix: string;
  /** Where it is not AWS's own, or as AWS_ENDPOINT_URL_S3 says. */
  readonly endpoint?: string;
  readonly region?: string;
  readonly pathStyle?: boolean;
  /**
   * `default`: each object goes and comes with a CRC that AWS's library and the store compare, and goes with a Content-MD5.
   * `md5`: with that alone, for stores that refuse the library's headers.
   */
  readonly checksums: "default" | "md5";
}

type Sdk = typeof import("@aws-sdk/client-s3");

/**
 * Objects in a bucket of S3 or what speaks its protocol. Credentials, the profile and the endpoint are found as AWS's own
 * tools find them: environment, configuration files, the machine's role. Tries are counted here and not by the library: its
 * own end at the answer's headers, and a body that was cut or changed on its way has to be asked for again as well.
 */
export class S3Store implements ObjectStore {
  readonly parallel = 32;
  readonly #name: string;

  private constructor(
    readonly url: string,
    private readonly sdk: Sdk,
    private readonly client: S3Client,
    private readonly location: S3Location,
    private readonly policy: RetryPolicy | undefined,
  ) {
    this.#name = `the store ${url}`;
  }

  /**
   * Asks the store nothing yet. The library is loaded here, so that whoever opens no such store doesn't pay for it. Throws a
   * SetupError where neither the URL nor AWS's own settings say the region.
   */
  static async open(url: string, location: S3Location, policy?: RetryPolicy): Promise<S3Store> {
    const sdk = await import("@aws-sdk/client-s3");
    const client = new sdk.S3Client(configOf(location));
    await client.config.region().catch((cause: unknown) => {
      throw new SetupError(`the store ${url} is in no region that anything names`, {
        hint: "add ?region=… to its URL, or set AWS_REGION; a server of your own needs ?endpoint=… instead",
        cause,
      });
    });
    return new S3Store(url, sdk, client, location, policy);
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    // Beside the library's CRC: some servers take that without looking at it, and every one compares this.
    const md5 = hash("md5", bytes, "base64");
    const input = { ...this.#at(key), Body: bytes, ContentLength: bytes.length, ContentMD5: md5 };
    await this.#ask(`can't write ${key}`, "unknown", (signal) =>
      this.client.send(new this.sdk.PutObjectCommand(input), { abortSignal: signal }),
    );
  }

  /** What a bucket permits shows with the first object alone. */
  async checkWritable(): Promise<void> {}

  async get(key: string, limit: number): Promise<Buffer | undefined> {
    return this.#ask(`can't read ${key}`, "no", async (signal) => {
      const answer = await absentAsUndefined(
        this.client.send(new this.sdk.GetObjectCommand(this.#at(key)), { abortSignal: signal }),
      );
      if (answer === undefined) return undefined;
      return readBody(answer.Body as Readable, answer.ContentLength, limit, signal);
    });
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    return this.#ask(`can't look at ${key}`, "no", async (signal) => {
      const answer = await absentAsUndefined(
        this.client.send(new this.sdk.HeadObjectCommand(this.#at(key)), { abortSignal: signal }),
      );
      if (answer === undefined) return undefined;
      return { key, size: answer.ContentLength ?? 0, modified: answer.LastModified ?? new Date(0) };
    });
  }

  async list(prefix: string, next?: string): Promise<ObjectPage> {
    checkPrefix(prefix);
    const input = {
      Bucket: this.location.bucket,
      Prefix: this.#full(prefix),
      ...(next === undefined ? {} : { ContinuationToken: next }),
    };
    const answer = await this.#ask("can't be listed", "no", (signal) =>
      this.client.send(new this.sdk.ListObjectsV2Command(input), { abortSignal: signal }),
    );
    const start = this.#full("").length;
    const objects = (answer.Contents ?? []).map((each) => ({
      key: (each.Key ?? "").slice(start),
      size: each.Size ?? 0,
      modified: each.LastModified ?? new Date(0),
    }));
    const following = answer.IsTruncated === true ? answer.NextContinuationToken : undefined;
    return { objects, ...(following === undefined ? {} : { next: following }) };
  }

  async delete(key: string): Promise<void> {
    await this.#ask(`can't delete ${key}`, "unknown", (signal) =>
      absentAsUndefined(this.client.send(new this.sdk.DeleteObjectCommand(this.#at(key)), { abortSignal: signal })),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.destroy();
  }

  #at(key: string): { Bucket: string; Key: string } {
    checkKey(key);
    return { Bucket: this.location.bucket, Key: this.#full(key) };
  }

  #full(key: string): string {
    return this.location.prefix === "" ? key : `${this.location.prefix}/${key}`;
  }

  async #ask<T>(what: string, applied: "no" | "unknown", work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    let tries = 0;
    try {
      return await withRetries(
        (signal) => {
          tries += 1;
          return work(signal);
        },
        mayPass,
        this.policy,
      );
    } catch (thrown) {
      throw storeFailure(thrown, { store: this.#name, bucket: this.location.bucket, what, tries, applied });
    }
  }
}

function configOf({ endpoint, region, pathStyle, checksums }: S3Location): S3ClientConfig {
  const environment = process.env;
  const elsewhere = endpoint ?? environment.AWS_ENDPOINT_URL_S3 ?? environment.AWS_ENDPOINT_URL;
  // AWS_DEFAULT_REGION is what the command line of AWS reads, and this library doesn't. Elsewhere the name means nothing.
  const named =
    region ?? environment.AWS_REGION ?? environment.AWS_DEFAULT_REGION ?? (elsewhere ? "us-east-1" : undefined);
  const whenRequired = {
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
  } as const;
  return {
    maxAttempts: 1,
    requestHandler: { connectionTimeout: CONNECT_MS, httpsAgent: { maxSockets: 64 }, httpAgent: { maxSockets: 64 } },
    forcePathStyle: pathStyle ?? Boolean(elsewhere),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(named === undefined ? {} : { region: named }),
    ...(checksums === "md5" ? whenRequired : {}),
  };
}

async function absentAsUndefined<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (thrown) {
    if (isAbsent(thrown)) return undefined;
    throw thrown;
  }
}

/** The body up to `limit` + 1 bytes. Throws BodyLost for one that ends early, BodyChanged for one that fails its checksum. */
async function readBody(
  body: Readable,
  length: number | undefined,
  limit: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    addAbortSignal(signal, body);
    for await (const chunk of body) {
      chunks.push(chunk as Buffer);
      size += (chunk as Buffer).length;
      if (size > limit) return Buffer.concat(chunks).subarray(0, limit + 1);
    }
  } catch (cause) {
    // Whatever breaks a connection or a wait has a code; the library's word for a wrong checksum is a bare Error.
    if ((cause as NodeJS.ErrnoException).code === undefined) throw new BodyChanged(messageOf(cause), { cause });
    throw new BodyLost(`the answer's body was lost after ${size} bytes`, { cause });
  }
  if (length !== undefined && length !== size)
    throw new BodyLost(`the answer's body ended after ${size} of ${length} bytes`);
  return Buffer.concat(chunks);
}
