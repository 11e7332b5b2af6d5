import { promisify } from "node:util";
import { constants, crc32, deflateRaw as deflateRawWithCallback } from "node:zlib";

const deflateRaw = promisify(deflateRawWithCallback);

/** The fastest level whose files stay small on screens. */
const LEVEL = 2;
/** The output of most strips fits, so that one turn of a thread is enough. */
const OUTPUT_BYTES = 64 << 10;
const CHANNELS = 3;

/** A strip of a picture as deflate's blocks, whole bytes of them, and what the picture's checksum needs to know of it. */
interface EncodedStrip {
  readonly blocks: Buffer;
  readonly adler: number;
  /** Bytes before they were compressed. */
  readonly length: number;
}

/**
 * Some rows of a picture, compressed by themselves: what they become is the same in every picture that has these rows in
 * this place.
 */
export class Strip {
  #encoded: Promise<EncodedStrip> | undefined;

  constructor(
    private readonly top: number,
    private readonly rows: number,
  ) {}

  /** Compresses the strip, at most once. `rgb` is the whole picture, one that has the strip. */
  encoded(rgb: Buffer, width: number): Promise<EncodedStrip> {
    if (this.#encoded === undefined) {
      this.#encoded = this.#encode(rgb, width);
      this.#encoded.catch(() => {
        this.#encoded = undefined;
      });
    }
    return this.#encoded;
  }

  async #encode(rgb: Buffer, width: number): Promise<EncodedStrip> {
    const row = width * CHANNELS;
    // Each row begins with its filter; on screens none at all is the fastest and hardly the largest.
    const scanlines = Buffer.allocUnsafeSlow((row + 1) * this.rows);
    for (let y = 0; y < this.rows; y += 1) {
      const from = (this.top + y) * row;
      scanlines[y * (row + 1)] = 0;
      rgb.copy(scanlines, y * (row + 1) + 1, from, from + row);
    }
    const blocks = await deflateRaw(scanlines, {
      level: LEVEL,
      chunkSize: OUTPUT_BYTES,
      // Ends at a whole byte without saying that it was the last block, so that another strip's can follow.
      finishFlush: constants.Z_SYNC_FLUSH,
    });
    // What comes is a part of a buffer of OUTPUT_BYTES, which it would keep.
    return { blocks: Buffer.from(blocks), adler: adler32(scanlines), length: scanlines.length };
  }
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** zlib's header: deflate, a window of 32 KiB, no dictionary. Source: RFC 1950. */
const ZLIB_HEADER = Buffer.from([0x78, 0x01]);
/** Deflate's last block, without anything in it. Source: RFC 1951. */
const LAST_BLOCK = Buffer.from([0x03, 0x00]);

/** A PNG of 8 bits a channel, in RGB, from its strips. Source: the PNG specification, third edition. */
export async function pngOf(strips: readonly Strip[], rgb: Buffer, width: number, height: number): Promise<Buffer> {
  const encoded = await Promise.all(strips.map((strip) => strip.encoded(rgb, width)));
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 8;
  header[9] = 2;
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(encoded.reduce((sum, { adler, length }) => joinedAdler32(sum, adler, length), 1));
  return Buffer.concat([
    SIGNATURE,
    ...chunk("IHDR", [header]),
    ...chunk("IDAT", [ZLIB_HEADER, ...encoded.map(({ blocks }) => blocks), LAST_BLOCK, checksum]),
    ...chunk("IEND", []),
  ]);
}

function chunk(type: string, data: readonly Buffer[]): Buffer[] {
  const name = Buffer.from(type, "latin1");
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.reduce((sum, { length }) => sum + length, 0));
  check.writeUInt32BE([name, ...data].reduce((sum, part) => crc32(part, sum), 0));
  return [length, name, ...data, check];
}

const ADLER_BASE = 65_521;
/** So many words can be summed up before a sum no longer fits 53 bits; few enough for 32, which is faster. */
const ADLER_WORDS = 1_380;

/** The checksum of zlib's format, which Node has only inside of it. `bytes` begin at a multiple of 4. Source: RFC 1950. */
function adler32(bytes: Buffer): number {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  let low = 1;
  let high = 0;
  for (let at = 0; at < words.length; ) {
    const end = Math.min(at + ADLER_WORDS, words.length);
    const count = end - at;
    // The sum of the bytes so far, of that sum before each word, and of what each word adds to the latter by itself.
    let sum = 0;
    let before = 0;
    let within = 0;
    for (; at < end; at += 1) {
      const word = words[at] as number;
      const [a, b, c, d] = [word & 0xff, (word >>> 8) & 0xff, (word >>> 16) & 0xff, word >>> 24];
      before += sum;
      sum += a + b + c + d;
      within += 4 * a + 3 * b + 2 * c + d;
    }
    high = (high + 4 * count * low + 4 * before + within) % ADLER_BASE;
    low = (low + sum) % ADLER_BASE;
  }
  for (const byte of bytes.subarray(words.length * 4)) {
    low = (low + byte) % ADLER_BASE;
    high = (high + low) % ADLER_BASE;
  }
  return high * 0x10000 + low;
}

/** The checksum of two texts behind one another, from those of each and the second's length. */
function joinedAdler32(first: number, second: number, secondLength: number): number {
  const [low, high] = [first & 0xffff, first >>> 16];
  const rest = secondLength % ADLER_BASE;
  const joinedLow = (low + (second & 0xffff) + ADLER_BASE - 1) % ADLER_BASE;
  const joinedHigh = (rest * low + high + (second >>> 16) + ADLER_BASE - rest) % ADLER_BASE;
  return joinedHigh * 0x10000 + joinedLow;
}
