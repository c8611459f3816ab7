import { createReasoningSeal, type ReasoningSeal } from './reasoning.ts'
import type { Sealer } from './sealer.ts'

/** Everything that one caller keeps for us. */
export type Seals = {
  readonly reasoning: ReasoningSeal
  readonly compaction: TextSeal
}

/** `open` answers null for what is no seal of ours, and throws `invalid_encrypted_content`. */
export type TextSeal = {
  seal(plain: string): string
  open(sealed: string): string | null
}

export function createSeals(sealer: Sealer, ownerId: string): Seals {
  return {
    reasoning: createReasoningSeal(sealer, ownerId),
    compaction: {
      seal: (plain) => sealer.seal('compaction', ownerId, plain),
      open: (sealed) => sealer.open('compaction', ownerId, sealed),
    },
  }
}
