import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Encoding } from '#speech/decoders/decoder.ts'
import { sniff, sniffFrames } from '#speech/decoders/open-decoder.ts'
import { spool } from '#storage/spool.ts'
import { invalidField, messages } from './errors.ts'

/** An uploaded file on disk, until it is closed. */
export type SpooledAudio = Awaited<ReturnType<typeof spoolAudio>>

const chunkBytes = 65_536

/**
 * Writes the upload to an unlinked file, so that nothing remains however this process ends. Throws
 * the errors of `spool`; nothing remains then either.
 */
export async function spoolAudio(
  source: AsyncIterable<Uint8Array>,
  options: { folder: string; bytesMax: number; filename: string | null },
) {
  const path = join(options.folder, Bun.randomUUIDv7())
  const { bytes, head } = await spool(source, path, { bytesMax: options.bytesMax })
  try {
    const file = await open(path)
    return {
      filename: options.filename,
      bytes,
      /** The first bytes. */
      head,
      async *read(): AsyncGenerator<Uint8Array, void, void> {
        for (;;) {
          const { bytesRead, buffer } = await file.read(Buffer.alloc(chunkBytes), 0, chunkBytes)
          if (bytesRead === 0) return
          yield buffer.subarray(0, bytesRead)
        }
      },
      /** Idempotent. */
      close: () => file.close(),
    }
  } finally {
    await rm(path, { force: true })
  }
}

/**
 * Detects the encoding by the first bytes. The file name only counts for MP3, whose streams may
 * start with anything. Throws `invalid_request` for unsupported formats.
 */
export function detectEncoding({ head, filename }: SpooledAudio): Encoding {
  const found = sniff(head) ?? sniffFrames(head)
  if (found?.encoding) return found.encoding
  if (found === null && /\.(mp3|mpga|mpeg)$/i.test(filename ?? '')) return 'mp3'
  const format = found === null ? 'is unknown' : `is ${found.name}`
  throw invalidField('file', messages.unsupportedFormat(format), 'unsupported_file_format')
}
