import { oggChecksum, oggChecksumAt } from '#lib/ogg-checksum.ts'

/** Encodes one frame of 16-bit samples as an Opus packet. */
export type EncodeFrame = (frame: Uint8Array) => Uint8Array

/** Positions in an Ogg Opus stream count samples of this rate. */
const positionRateHz = 48_000
const frameMs = 20
/** What libopus delays audio by, in samples of `positionRateHz`; players skip it. */
const preSkip = 312
const packetsPerPageMax = 50
const pageHeaderBytes = 27
const flags = { begin: 2, end: 4 }

/** Writes 16-bit samples of one channel as an Ogg Opus stream (RFC 7845), in whole pages. */
export class OggOpusWriter {
  readonly #rateHz: number
  readonly #encodeFrame: EncodeFrame
  readonly #serial = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0
  /** Samples that do not fill a frame yet. */
  #rest = new Uint8Array()
  #samples = 0
  #packets = 0
  #pages = 0

  constructor(rateHz: number, encodeFrame: EncodeFrame) {
    this.#rateHz = rateHz
    this.#encodeFrame = encodeFrame
  }

  /** The two header pages. */
  begin(): Uint8Array {
    const head = Buffer.alloc(19)
    head.write('OpusHead', 'latin1')
    head.writeUInt8(1, 8)
    head.writeUInt8(1, 9)
    head.writeUInt16LE(preSkip, 10)
    head.writeUInt32LE(this.#rateHz, 12)
    const vendor = 'sluice'
    const tags = Buffer.alloc(16 + vendor.length)
    tags.write('OpusTags', 'latin1')
    tags.writeUInt32LE(vendor.length, 8)
    tags.write(vendor, 12, 'latin1')
    return Buffer.concat([
      this.#page([head], { position: 0, flag: flags.begin }),
      this.#page([tags], { position: 0, flag: 0 }),
    ])
  }

  push(samples: Uint8Array): Uint8Array {
    this.#samples += samples.length / 2
    const audio = Buffer.concat([this.#rest, samples])
    const whole = audio.length - (audio.length % this.#frameBytes)
    this.#rest = audio.slice(whole)
    const pages: Uint8Array[] = []
    for (let at = 0; at < whole; ) {
      const packets: Uint8Array[] = []
      for (; at < whole && packets.length < packetsPerPageMax; at += this.#frameBytes) {
        packets.push(this.#encodeFrame(audio.subarray(at, at + this.#frameBytes)))
      }
      this.#packets += packets.length
      pages.push(this.#page(packets, { position: this.#encoded, flag: 0 }))
    }
    return Buffer.concat(pages)
  }

  /** The last page, whose position ends the stream with the last sample. */
  finish(): Uint8Array {
    const position = preSkip + Math.round((this.#samples * positionRateHz) / this.#rateHz)
    const packets: Uint8Array[] = []
    let rest = this.#rest
    do {
      const frame = new Uint8Array(this.#frameBytes)
      frame.set(rest)
      rest = new Uint8Array()
      packets.push(this.#encodeFrame(frame))
      this.#packets++
    } while (this.#encoded < position)
    return this.#page(packets, { position, flag: flags.end })
  }

  get #frameBytes(): number {
    return (2 * this.#rateHz * frameMs) / 1000
  }

  get #encoded(): number {
    return (this.#packets * positionRateHz * frameMs) / 1000
  }

  #page(packets: readonly Uint8Array[], { position, flag }: { position: number; flag: number }) {
    const lacing = packets.flatMap(({ length }) => [
      ...Array<number>(Math.floor(length / 255)).fill(255),
      length % 255,
    ])
    const header = Buffer.alloc(pageHeaderBytes)
    header.write('OggS', 'latin1')
    header.writeUInt8(flag, 5)
    header.writeBigInt64LE(BigInt(position), 6)
    header.writeUInt32LE(this.#serial, 14)
    header.writeUInt32LE(this.#pages++, 18)
    header.writeUInt8(lacing.length, 26)
    const page = Buffer.concat([header, Uint8Array.from(lacing), ...packets])
    page.writeUInt32LE(oggChecksum(page), oggChecksumAt)
    return page
  }
}
