import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { spool } from '#storage/spool.ts'

/** A file of a caller on the disk, until it is closed. */
export type SpooledAudio = {
  readonly filename: string | null
  readonly bytes: number
  readonly head: Uint8Array
  /** Its bytes in order, at the speed at which they are taken. */
  read(): AsyncGenerator<Uint8Array, void, void>
  /** Harmless when called twice. */
  close(): Promise<void>
}

const chunkBytes = 65_536

/**
 * Keeps bytes in a file that has no name any more, so that nothing is left of it however this
 * process ends. Throws what `spool` throws, and then nothing is left either.
 */
export async function spoolAudio(
  source: AsyncIterable<Uint8Array>,
  place: { folder: string; bytesMax: number; filename: string | null },
): Promise<SpooledAudio> {
  const path = join(place.folder, Bun.randomUUIDv7())
  const { bytes, head } = await spool(source, path, { bytesMax: place.bytesMax })
  try {
    const file = await open(path)
    return {
      filename: place.filename,
      bytes,
      head,
      async *read() {
        for (;;) {
          const { bytesRead, buffer } = await file.read(Buffer.alloc(chunkBytes), 0, chunkBytes)
          if (bytesRead === 0) return
          yield buffer.subarray(0, bytesRead)
        }
      },
      close: () => file.close(),
    }
  } finally {
    await rm(path, { force: true })
  }
}
