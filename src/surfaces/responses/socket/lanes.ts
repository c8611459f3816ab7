import { AppError } from '#lib/errors.ts'
import type { CreateFrame } from './frames.ts'

export type LaneLimits = {
  /** Requests that run at the same time. */
  readonly activeMax: number
  /** Distinct names of lanes; the default lane has none. */
  readonly lanesMax: number
  readonly queuedMax: number
  readonly queuedCharsMax: number
}

type Lane = {
  readonly queued: CreateFrame[]
  isBusy: boolean
  /** When its last request began, as a count of requests; 0 before the first. */
  turn: number
}

/**
 * The requests of one connection. Those of a lane run one after the other, in order; lanes run
 * concurrently. When one has to wait, the lane runs next whose turn is longest ago, so that a lane with
 * many requests does not delay another.
 */
export function createLanes({ activeMax, lanesMax, queuedMax, queuedCharsMax }: LaneLimits) {
  /** By stream id; names stay until the connection closes. */
  const lanes = new Map<string | null, Lane>()
  let active = 0
  let turns = 0
  let queued = 0
  let queuedChars = 0

  function open(streamId: string | null): Lane | null {
    const known = lanes.get(streamId)
    if (known !== undefined) return known
    const named = lanes.has(null) ? lanes.size - 1 : lanes.size
    if (streamId !== null && named >= lanesMax) return null
    const lane: Lane = { queued: [], isBusy: false, turn: 0 }
    lanes.set(streamId, lane)
    return lane
  }

  function take(lane: Lane): CreateFrame | undefined {
    const frame = lane.queued.shift()
    if (frame === undefined) return undefined
    queued--
    queuedChars -= frame.chars
    return frame
  }

  return {
    /** Adds a request at the end of its lane, or returns why not. */
    add(frame: CreateFrame): AppError | null {
      const lane = open(frame.streamId)
      if (lane === null) return tooManyLanes(lanesMax)
      const mustWait = active >= activeMax || lane.isBusy || lane.queued.length > 0
      const isFull = queued >= queuedMax || queuedChars + frame.chars > queuedCharsMax
      if (mustWait && isFull) return queueFull()
      lane.queued.push(frame)
      queued++
      queuedChars += frame.chars
      return null
    },
    /** Adds a request that continues the last one of its lane, before those that wait. */
    addNext(frame: CreateFrame): void {
      lanes.get(frame.streamId)?.queued.unshift(frame)
      queued++
      queuedChars += frame.chars
    },
    /** The next request that may run, whose lane is busy until `done`; null: none. */
    next(): CreateFrame | null {
      if (active >= activeMax) return null
      let next: Lane | null = null
      for (const lane of lanes.values()) {
        const canRun = !lane.isBusy && lane.queued.length > 0
        if (canRun && (next === null || lane.turn < next.turn)) next = lane
      }
      if (next === null) return null
      next.isBusy = true
      next.turn = ++turns
      active++
      return take(next) ?? null
    },
    done(streamId: string | null): void {
      const lane = lanes.get(streamId)
      if (lane !== undefined) lane.isBusy = false
      active--
    },
    /** Removes and returns all requests that wait. */
    clear(): CreateFrame[] {
      const frames = [...lanes.values()].flatMap((lane) => lane.queued.splice(0))
      queued = 0
      queuedChars = 0
      return frames
    },
    active: () => active,
  }
}

function tooManyLanes(lanesMax: number): AppError {
  return new AppError(
    'invalid_request',
    `The connection has its maximum of ${lanesMax} distinct values of stream_id; reuse one, or open another connection.`,
    { code: 'websocket_stream_limit_reached', param: 'stream_id' },
  )
}

function queueFull(): AppError {
  return new AppError('rate_limit_exceeded', 'Too many requests are waiting on this connection.')
}
