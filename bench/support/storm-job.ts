import type { Quantiles } from './histogram.ts'
import { seededRandom } from './plan.ts'
import type { Faults } from './stream-check.ts'

/** Job of the storm clients, sent as JSON on standard input. */
export type StormJob = {
  readonly port: number
  readonly bearer: string
  readonly clients: number
  /** Time after which no client starts. */
  readonly lastsMs: number
  readonly seed: number
}

/** State of a request when its client disconnected. */
export const stages = [
  'sending the request',
  'waiting for the response',
  'reading the response',
] as const

export type Stage = (typeof stages)[number]

/** A disconnected client, in wall clock time. */
export type Disconnect = { readonly id: number; readonly stage: Stage; readonly atMs: number }

export type StormReport = {
  readonly left: readonly Disconnect[]
  /** Requests that completed. */
  readonly stayed: number
  /** Checked events of all streams. */
  readonly events: number
  /** Latency of complete responses minus the upstream's own time. */
  readonly stayedMs: Quantiles
  readonly faults: Faults
}

/** Behaviour of one request, shared by client and upstream through the prompt. */
export type StormRequest = {
  /** Unique id, contained in each token of the response. */
  readonly id: number
  /** Initial silence of the upstream. */
  readonly waitMs: number
  readonly tokens: number
  /** Interval of tokens. */
  readonly gapMs: number
}

/** Behaviour of one client. */
export type Behaviour = {
  readonly spec: StormRequest
  readonly surface: 'responses' | 'messages'
  readonly isStreamed: boolean
  /** Time of disconnecting; null: it stays. */
  readonly leavesAfterMs: number | null
  /** Whether it sends an incomplete request. */
  readonly isHalf: boolean
  /** Whether it disconnects with RST instead of FIN. */
  readonly isAbrupt: boolean
}

const leavesWithinMs = 3_000
const responseTokens = 10
const gapMs = 200
const waitMaxMs = 2_000
/** Longer than any client stays connected. */
const foreverMs = 600_000
const stayingShare = 0.1
const halfShare = 0.05
const silentShare = 0.3
const promptShare = 0.4

/** Deterministic for a seed. */
export function behaviours(seed: number): (id: number) => Behaviour {
  const random = seededRandom(seed)
  return (id) => {
    const stays = random() < stayingShare
    const waitSample = random()
    const isSilent = !stays && waitSample < silentShare
    const waitMs = waitSample > 1 - promptShare ? 0 : Math.round(random() * waitMaxMs)
    return {
      spec: { id, waitMs: isSilent ? foreverMs : waitMs, tokens: responseTokens, gapMs },
      surface: random() < 0.5 ? 'responses' : 'messages',
      isStreamed: random() < 0.7,
      leavesAfterMs: stays ? null : random() * leavesWithinMs,
      isHalf: !stays && random() < halfShare,
      isAbrupt: random() < 0.5,
    }
  }
}

/** Duration of the upstream's response. */
export function responseMs({ waitMs, tokens, gapMs }: StormRequest): number {
  return waitMs + (tokens - 1) * gapMs
}

export function writeStormRequest({ id, waitMs, tokens, gapMs }: StormRequest): string {
  return `storm ${id} ${waitMs} ${tokens} ${gapMs};`
}

export function readStormRequest(prompt: string): StormRequest | undefined {
  const found = /storm (\d+) (\d+) (\d+) (\d+);/.exec(prompt)
  if (found === null) return undefined
  const [id = 0, waitMs = 0, tokens = 0, gapMs = 0] = found.slice(1).map(Number)
  return { id, waitMs, tokens, gapMs }
}

export function stormToken(id: number, index: number): string {
  return `${id}.${index} `
}

export function stormText({ id, tokens }: StormRequest): string {
  return Array.from({ length: tokens }, (_, index) => stormToken(id, index)).join('')
}
