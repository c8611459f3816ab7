import { AppError } from '#lib/errors.ts'
import type { Claim } from './claims.ts'
import type { FetchJob } from './job.ts'

/**
 * What a connection holds before it writes; with one piece of the network, and times the connections,
 * the memory of a transfer.
 */
const heldBytesMax = 1024 * 1024
/** What was held for so long is written, however little it is. */
const holdMsMax = 500
/** A connection that brings less than this within `stallMs` is none. */
const trickleBytesMin = 4_096

export type Inflow = {
  readonly body: ReadableStream<Uint8Array>
  readonly claim: Claim
  /** Where the body ends by its head; null: it does not say. */
  readonly bodyEnd: number | null
  /** Whether more than the body's bytes cannot come, or is no matter. */
  readonly isFramed: boolean
  /** Around each wait for the network. */
  readonly watchdog: { begin(): void; end(): void }
}

/** `ended`: the body was over before the claim was; `excess`: it went on after its end. */
export type Received = 'filled' | 'ended' | 'excess'

/** Thrown where the network brings something, but too little of it. */
export class TrickleError extends Error {}

/**
 * Writes a body to its place, at the speed of the disk, until the claim is filled. What has come is
 * written whatever happens then. Throws `upstream_truncated` where the body broke off.
 */
export async function receive(job: FetchJob, inflow: Inflow): Promise<Received> {
  const { body, claim, bodyEnd, isFramed, watchdog } = inflow
  const reader = body.getReader()
  const held = createHeld(job, claim)
  const pace = createPace(job.settings.stallMs)
  try {
    for (;;) {
      const isFull = claim.at >= claim.end
      if (isFull && (isFramed || claim.end !== bodyEnd)) return 'filled'
      watchdog.begin()
      const { done, value } = await reader.read().catch(brokenOff)
      watchdog.end()
      if (done) return isFull ? 'filled' : 'ended'
      const room = claim.end - claim.at
      const isStolen = claim.end !== bodyEnd
      if (value.length > room) {
        held.add(value.subarray(0, Math.max(room, 0)))
        return isStolen || isFramed ? 'filled' : 'excess'
      }
      held.add(value)
      pace.took(value.length)
      if (held.isDue()) await held.flush()
    }
  } finally {
    watchdog.end()
    void reader.cancel().catch(() => {})
    await held.flush()
  }
}

function createHeld({ part, hash, patience }: FetchJob, claim: Claim) {
  let pieces: Uint8Array[] = []
  let bytes = 0
  let flushedAt = performance.now()
  return {
    add(piece: Uint8Array) {
      pieces.push(piece)
      bytes += piece.length
      claim.at += piece.length
    },
    isDue: () => bytes >= heldBytesMax || performance.now() - flushedAt > holdMsMax,
    async flush() {
      flushedAt = performance.now()
      if (bytes === 0) return
      const offset = claim.at - bytes
      const taken = pieces
      pieces = []
      bytes = 0
      await part.write(offset, taken)
      hash.advance(offset, taken, part.prefixEnd())
      patience.gained(part.bytesWritten())
    },
  }
}

/** Throws when a whole span of time brought next to nothing. */
function createPace(stallMs: number) {
  let begunAt = performance.now()
  let bytes = 0
  return {
    took(more: number) {
      bytes += more
      if (performance.now() - begunAt < stallMs) return
      if (bytes < trickleBytesMin) throw new TrickleError()
      begunAt = performance.now()
      bytes = 0
    },
  }
}

function brokenOff(cause: unknown): never {
  throw new AppError('upstream_truncated', 'The source broke off.', { cause })
}
