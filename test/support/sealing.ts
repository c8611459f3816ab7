import { createSealerOf } from '#sealing/sealer.ts'
import type { ReasoningSeal } from '#sealing/seals.ts'
import { sealsOf } from '#sealing/seals.ts'

/** The seals of one caller, as real as those of a gateway. */
export const testSeals = sealsOf(createSealerOf(['a-secret-for-tests-of-seals-0123456']), 'owner')

/** Hides nothing, so that two renderings of the same reasoning are the same text. */
export const openSeal: ReasoningSeal = {
  seal: (reasoning) => JSON.stringify(reasoning),
  open: (sealed) => JSON.parse(sealed),
}
