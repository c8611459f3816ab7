import { AppError } from '#lib/errors.ts'
import { createLru } from '#lib/lru.ts'

export type UnstoredResponses = ReturnType<typeof createUnstored>

type Unstored = { readonly id: string; readonly ownerId: string }

const rememberedMax = 10_000

/**
 * Remembers the responses that ended during an outage of the database and could not be stored, while
 * this process lives.
 */
export function createUnstored() {
  const owners = createLru<string, string>(rememberedMax)
  const unannounced: Unstored[] = []
  return {
    add({ id, ownerId }: Unstored) {
      owners.set(id, ownerId)
    },
    /** The same, and other workers are notified later. */
    addOwn(unstored: Unstored) {
      owners.set(unstored.id, unstored.ownerId)
      if (unannounced.length < rememberedMax) unannounced.push(unstored)
    },
    /** Tells other workers, once the database is available again. */
    async announce(publish: (unstored: Unstored) => Promise<void>) {
      for (let next = unannounced[0]; next !== undefined; next = unannounced[0]) {
        await publish(next)
        unannounced.shift()
      }
    },
    has: (id: string) => owners.get(id) !== undefined,
    /** Throws if this response of this owner is one of them. */
    refuse(ownerId: string, id: string) {
      if (owners.get(id) === ownerId) throw notStored()
    },
  }
}

/** The code of responses that ended and could not be stored. */
export const notStoredCode = 'response_not_stored'

function notStored(): AppError {
  const message = 'The response ended, but could not be stored; the database was not available.'
  return new AppError('not_found', message, { code: notStoredCode, param: 'response_id' })
}

/** The error of a response that was stored in part, and ended without being stored. */
export function storedInPart(): AppError {
  const message = 'The response ended, but only a part of it could be stored.'
  return new AppError('service_unavailable', message, { code: notStoredCode })
}
