import type { Quantiles } from './histogram.ts'
import { seededRandom } from './plan.ts'
import type { Faults } from './stream-check.ts'

/** What the clients of a storm shall do; their program gets this as JSON on its standard input. */
export type StormJob = {
  readonly port: number
  readonly bearer: string
  readonly clients: number
  /** After this time nobody comes any more. */
  readonly lastsMs: number
  readonly seed: number
}

/** Where a client was with its request when it left. */
export const stages = ['sending it', 'waiting for the answer', 'reading the answer'] as const

export type Stage = (typeof stages)[number]

/** One client that left, by the wall clock. */
export type Leaving = { readonly id: number; readonly stage: Stage; readonly atMs: number }

export type StormReport = {
  readonly left: readonly Leaving[]
  /** Requests whose client stayed, and had the whole answer. */
  readonly stayed: number
  /** Events of all streams that were read, each of them checked. */
  readonly events: number
  /** From the request to the end of the answer, less what the upstream takes for it. */
  readonly stayedMs: Quantiles
  readonly faults: Faults
}

/** What one client wants, agreed between it and the upstream by the words in its prompt. */
export type StormWish = {
  /** Each request has its own, which is in each token of the answer to it. */
  readonly id: number
  /** The upstream says nothing for so long. */
  readonly waitMs: number
  readonly tokens: number
  /** Between two tokens. */
  readonly gapMs: number
}

/** How one client behaves. */
export type Behaviour = {
  readonly wish: StormWish
  readonly surface: 'responses' | 'messages'
  readonly isStreamed: boolean
  /** After so long it leaves; null for those who stay. */
  readonly leavesAfterMs: number | null
  /** Whether it sends only a part of its request. */
  readonly isHalf: boolean
  /** Whether it leaves without a word (RST), or closes (FIN). */
  readonly isAbrupt: boolean
}

const leavesWithinMs = 3_000
const answerTokens = 10
const gapMs = 200
const waitMaxMs = 2_000
/** Longer than any client stays. */
const foreverMs = 600_000
const stayingShare = 0.1
const halfShare = 0.05
const silentShare = 0.3
const promptShare = 0.4

/** The same for the same seed. */
export function behaviours(seed: number): (id: number) => Behaviour {
  const random = seededRandom(seed)
  return (id) => {
    const stays = random() < stayingShare
    const patience = random()
    const isSilent = !stays && patience < silentShare
    const waitMs = patience > 1 - promptShare ? 0 : Math.round(random() * waitMaxMs)
    return {
      wish: { id, waitMs: isSilent ? foreverMs : waitMs, tokens: answerTokens, gapMs },
      surface: random() < 0.5 ? 'responses' : 'messages',
      isStreamed: random() < 0.7,
      leavesAfterMs: stays ? null : random() * leavesWithinMs,
      isHalf: !stays && random() < halfShare,
      isAbrupt: random() < 0.5,
    }
  }
}

/** How long the upstream takes for the whole answer. */
export function answerMs({ waitMs, tokens, gapMs }: StormWish): number {
  return waitMs + (tokens - 1) * gapMs
}

export function writeWish({ id, waitMs, tokens, gapMs }: StormWish): string {
  return `storm ${id} ${waitMs} ${tokens} ${gapMs};`
}

export function readWish(prompt: string): StormWish | undefined {
  const found = /storm (\d+) (\d+) (\d+) (\d+);/.exec(prompt)
  if (found === null) return undefined
  const [id = 0, waitMs = 0, tokens = 0, gapMs = 0] = found.slice(1).map(Number)
  return { id, waitMs, tokens, gapMs }
}

export function stormToken(id: number, index: number): string {
  return `${id}.${index} `
}

export function stormText({ id, tokens }: StormWish): string {
  return Array.from({ length: tokens }, (_, index) => stormToken(id, index)).join('')
}
