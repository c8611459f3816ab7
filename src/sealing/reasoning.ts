import { isRecord, parseJson } from '#lib/json.ts'
import type { Sealer } from './sealer.ts'

/** What a model thought in one turn, as it must come back to it. */
type SealedReasoning = {
  /** The thoughts themselves; empty where the upstream told none. */
  readonly text: string
  /** What the upstream itself sealed, and the name of who can open it. */
  readonly payload: string | null
  readonly maker: string | null
}

/** Reasoning that a client keeps for us. */
export type ReasoningSeal = {
  seal(reasoning: SealedReasoning): string
  /** null: no seal of ours. Throws `invalid_encrypted_content` as `Sealer.open` does. */
  open(sealed: string): SealedReasoning | null
}

export function createReasoningSeal(sealer: Sealer, ownerId: string): ReasoningSeal {
  return {
    seal: ({ text, payload, maker }) =>
      sealer.seal('reasoning', ownerId, JSON.stringify({ text, payload, maker })),
    open(sealed) {
      const plain = sealer.open('reasoning', ownerId, sealed)
      return plain === null ? null : readReasoning(parseJson(plain))
    },
  }
}

function readReasoning(value: unknown): SealedReasoning {
  const { text, payload, maker } = isRecord(value) ? value : {}
  return { text: readText(text) ?? '', payload: readText(payload), maker: readText(maker) }
}

function readText(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
