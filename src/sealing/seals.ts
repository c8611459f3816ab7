import { cachedByKey, cachedLatest } from '#lib/cached-by-key.ts'
import { asRecord, parseJson } from '#lib/json.ts'
import type { Sealer } from './sealer.ts'

/** Encrypts the state that one client keeps for this gateway. */
export type Seals = {
  readonly reasoning: ReasoningSeal
  readonly compaction: TextSeal
  /** The text of a result of a web search. */
  readonly search: TextSeal
}

/** `open` returns null for a foreign text and throws `invalid_encrypted_content`. */
export type TextSeal = {
  seal(plain: string): string
  open(sealed: string): string | null
}

/** The reasoning of a turn, which the client sends back with the next one. */
type SealedReasoning = {
  /** Empty if the upstream does not show its reasoning. */
  readonly text: string
  /** The payload that the upstream encrypted itself, and the upstream that can decrypt it. */
  readonly payload: string | null
  readonly maker: string | null
}

export type ReasoningSeal = {
  seal(reasoning: SealedReasoning): string
  /** Null: a foreign text. Throws `invalid_encrypted_content` like `Sealer.open`. */
  open(sealed: string): SealedReasoning | null
}

export function sealsOf(sealer: Sealer, ownerId: string): Seals {
  return sealsByOwner(sealer)(ownerId)
}

/** Every request has them, and few of them use any. */
const ownersMax = 1_000
const sealsByOwner = cachedByKey((sealer: Sealer) =>
  cachedLatest(ownersMax, (ownerId: string) => createSeals(sealer, ownerId)),
)

function createSeals(sealer: Sealer, ownerId: string): Seals {
  const textSeal = (purpose: 'compaction' | 'search'): TextSeal => ({
    seal: (plain) => sealer.seal(purpose, ownerId, plain),
    open: (sealed) => sealer.open(purpose, ownerId, sealed),
  })
  return {
    reasoning: {
      seal: ({ text, payload, maker }) =>
        sealer.seal('reasoning', ownerId, JSON.stringify({ text, payload, maker })),
      open(sealed) {
        const plain = sealer.open('reasoning', ownerId, sealed)
        return plain === null ? null : readReasoning(parseJson(plain))
      },
    },
    compaction: textSeal('compaction'),
    search: textSeal('search'),
  }
}

function readReasoning(value: unknown): SealedReasoning {
  const { text, payload, maker } = asRecord(value)
  return { text: readText(text) ?? '', payload: readText(payload), maker: readText(maker) }
}

function readText(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
