import { AppError } from '#lib/errors.ts'
import { createLoadingCache } from '#lib/loading-cache.ts'
import { setBounded } from '#lib/single-flight.ts'
import { credentialsCachedMax } from './credentials.ts'

const unknownMs = 5_000
/** How long a cached secret works while the database is unreachable. */
const outageTrustMs = 300_000

/** What the database knows of secrets, found by their hashes. */
export function createSecretCache<V extends object>(options: {
  /** How long a value is served from the cache. */
  cacheMs: number
  load: (hash: Buffer) => Promise<V | undefined>
  /** The error for an unknown secret. */
  unknown: () => AppError
}) {
  const { cacheMs, load, unknown } = options
  /** With the time when it was read from the database. */
  const cache = createLoadingCache<{ value: V; confirmedAt: number }>({
    entriesMax: credentialsCachedMax,
  })
  /** By hash, to limit the lookups of invalid secrets. */
  const unknownUntil = new Map<string, number>()

  async function lookUp(hash: Buffer, id: string) {
    const value = await load(hash)
    if (value === undefined) {
      setBounded(unknownUntil, id, performance.now() + unknownMs, credentialsCachedMax)
      throw unknown()
    }
    return { value, confirmedAt: performance.now() }
  }

  const findFresh = (id: string, isFresh?: (value: V) => boolean): V | undefined => {
    const known = cache.get(id)
    if (known === undefined || performance.now() - known.confirmedAt >= cacheMs) return undefined
    return isFresh?.(known.value) === false ? undefined : known.value
  }

  return {
    /** What is cached of a secret, without waiting. */
    cached: (hash: Buffer): V | undefined => findFresh(hash.toString('base64')),

    /** Throws `unknown` without such a secret; `isFresh` may refuse a cached value. */
    async find(hash: Buffer, isFresh?: (value: V) => boolean): Promise<V> {
      const id = hash.toString('base64')
      if ((unknownUntil.get(id) ?? 0) > performance.now()) throw unknown()
      const known = findFresh(id, isFresh)
      if (known !== undefined) return known
      try {
        return (await cache.load(id, () => lookUp(hash, id))).value
      } catch (error) {
        const isUnreachable = error instanceof AppError && error.kind === 'service_unavailable'
        const last = isUnreachable ? cache.get(id) : undefined
        if (last !== undefined && performance.now() - last.confirmedAt < outageTrustMs) {
          return last.value
        }
        throw error
      }
    },

    invalidate(isAffected: (value: V) => boolean): void {
      cache.invalidate(({ value }) => isAffected(value))
    },
  }
}
