import { expect } from 'bun:test'
import type { ReindexHarness } from './reindex-harness.ts'

/**
 * The expected results of searches: each live file of a collection exactly once, by its newest text
 * or, until that is indexed, by a text that it was found by before.
 */
export type Oracle = {
  readonly files: readonly KnownFile[]
  added(file: KnownFile): void
  /** Compares the results in a collection with the expected ones. */
  check(collection: string, mode: SearchMode): Promise<void>
  /** Compares after all jobs are done, and each file by its own keyword. */
  checkAtRest(collection: string): Promise<void>
}

type SearchMode = 'hybrid' | 'vector' | 'keyword'

type KnownFile = {
  readonly id: string
  readonly texts: string[]
  readonly collections: Set<string>
  isLive: boolean
  /** By collection: the index of the newest text that was found. */
  readonly reached: Map<string, number>
}

/** A keyword of all texts. */
const everywhere = 'everywhere'

export function textOf(number: number, version: number): string {
  return `${everywhere} ${wordOf(number, version)}`
}

function wordOf(number: number, version: number): string {
  return `file${number}version${version}`
}

export function createOracle(harness: ReindexHarness): Oracle {
  const files: KnownFile[] = []
  const membersOf = (collection: string) =>
    files.filter(({ isLive, collections }) => isLive && collections.has(collection))

  function checkFound(collection: string, found: readonly string[], isAtRest: boolean): void {
    const ids = found.map((entry) => entry.slice(0, entry.indexOf(':')))
    const members = membersOf(collection)
    expect(ids.length, 'no file is found twice').toBe(new Set(ids).size)
    const ghosts = ids.filter((id) => members.every((file) => file.id !== id))
    expect(ghosts, 'what is not there is not found').toEqual([])
    for (const file of members) {
      const reached = isAtRest ? file.texts.length - 1 : (file.reached.get(collection) ?? -1)
      const at = file.texts.findIndex((text) => found.includes(`${file.id}: ${text}`))
      const name = file.texts.at(-1)
      expect(at, `${name}, found as ${at} after ${reached}`).toBeGreaterThanOrEqual(reached)
      if (at >= 0) file.reached.set(collection, at)
    }
  }

  return {
    files,
    added: (file) => files.push(file),
    async check(collection, mode) {
      checkFound(collection, await harness.found(collection, everywhere, mode), false)
    },
    async checkAtRest(collection) {
      for (const mode of ['hybrid', 'vector', 'keyword'] as const) {
        checkFound(collection, await harness.found(collection, everywhere, mode), true)
      }
      for (const { id, texts } of membersOf(collection)) {
        const own = texts.at(-1) ?? ''
        const word = own.slice(everywhere.length + 1)
        expect(await harness.found(collection, word, 'keyword')).toEqual([`${id}: ${own}`])
        expect(await harness.found(collection, own, 'vector')).toContain(`${id}: ${own}`)
      }
    },
  }
}
