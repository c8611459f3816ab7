import { AppError } from '#lib/errors.ts'
import type { Claim } from './ranges.ts'
import type { FileDownload } from './transfer.ts'

/** Write buffer per connection; bounds the memory of a download. */
const bufferBytesMax = 1024 * 1024
/** A smaller buffer is written after this time. */
const bufferMsMax = 500
/** A connection that receives less within `stallMs` counts as stalled. */
const slowBytesMin = 4_096

type BodyOptions = {
  readonly body: ReadableStream<Uint8Array>
  readonly claim: Claim
  /** The end of the body according to the headers; null: unknown. */
  readonly bodyEnd: number | null
  /** The body cannot exceed its length, or the hash will tell. */
  readonly isFramed: boolean
  /** Runs during each wait for the network. */
  readonly watchdog: { begin(): void; end(): void }
}

/** Thrown when data arrives too slowly. */
export class SlowBodyError extends Error {}

/**
 * Writes a body to the file at the speed of the disk, until the claim is complete. Received bytes
 * are written even if it fails. `ended`: the body ended before the claim; `excess`: it is longer
 * than declared. Throws `upstream_truncated` if the connection breaks.
 */
export async function receiveBody(
  download: FileDownload,
  { body, claim, bodyEnd, isFramed, watchdog }: BodyOptions,
): Promise<'completed' | 'ended' | 'excess'> {
  const reader = body.getReader()
  const buffer = createBuffer(download, claim)
  const checkSpeed = createSpeedCheck(download.settings.stallMs)
  try {
    for (;;) {
      const isFull = claim.at >= claim.end
      if (isFull && (isFramed || claim.end !== bodyEnd)) return 'completed'
      watchdog.begin()
      const { done, value } = await reader.read().catch(connectionBroken)
      watchdog.end()
      if (done) return isFull ? 'completed' : 'ended'
      const missing = claim.end - claim.at
      const wasSplit = claim.end !== bodyEnd
      if (value.length > missing) {
        buffer.add(value.subarray(0, Math.max(missing, 0)))
        return wasSplit || isFramed ? 'completed' : 'excess'
      }
      buffer.add(value)
      checkSpeed(value.length)
      if (buffer.isDue()) await buffer.flush()
    }
  } finally {
    watchdog.end()
    void reader.cancel().catch(() => {})
    await buffer.flush()
  }
}

function createBuffer({ part, retryBudget }: FileDownload, claim: Claim) {
  let chunks: Uint8Array[] = []
  let bytes = 0
  let flushedAt = performance.now()
  return {
    add(chunk: Uint8Array) {
      chunks.push(chunk)
      bytes += chunk.length
      claim.at += chunk.length
    },
    isDue: () => bytes >= bufferBytesMax || performance.now() - flushedAt > bufferMsMax,
    async flush() {
      flushedAt = performance.now()
      if (bytes === 0) return
      const offset = claim.at - bytes
      const written = chunks
      chunks = []
      bytes = 0
      await part.write(offset, written)
      retryBudget.progressed(part.bytesWritten())
    },
  }
}

/** Throws if almost nothing arrived within `stallMs`. */
function createSpeedCheck(stallMs: number): (receivedBytes: number) => void {
  let startedAt = performance.now()
  let bytes = 0
  return (receivedBytes) => {
    bytes += receivedBytes
    if (performance.now() - startedAt < stallMs) return
    if (bytes < slowBytesMin) throw new SlowBodyError()
    startedAt = performance.now()
    bytes = 0
  }
}

function connectionBroken(cause: unknown): never {
  throw new AppError('upstream_truncated', 'The connection to the source broke.', { cause })
}
