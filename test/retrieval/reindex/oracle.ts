import { expect } from 'bun:test'
import type { ReindexWorld } from './reindex-world.ts'

/**
 * What a search must find, whatever goes on beneath it: each live file of a collection exactly once,
 * by its newest text or, while that is on its way, by one that it was found by before.
 */
export type Oracle = {
  readonly files: readonly KnownFile[]
  added(file: KnownFile): void
  /** Compares what is found in a collection with what must be. */
  check(collection: string, mode: SearchMode): Promise<void>
  /** The same with nothing on its way, and each file by its own word. */
  checkAtRest(collection: string): Promise<void>
}

type SearchMode = 'hybrid' | 'vector' | 'keyword'

type KnownFile = {
  readonly id: string
  readonly texts: string[]
  readonly collections: Set<string>
  isLive: boolean
  /** The newest text that it was found by, by collection. */
  readonly reached: Map<string, number>
}

/** A word that every text has, so that one search finds all there is. */
const everywhere = 'everywhere'

export function textOf(number: number, version: number): string {
  return `${everywhere} ${wordOf(number, version)}`
}

function wordOf(number: number, version: number): string {
  return `file${number}version${version}`
}

export function createOracle(world: ReindexWorld): Oracle {
  const files: KnownFile[] = []
  const membersOf = (collection: string) =>
    files.filter(({ isLive, collections }) => isLive && collections.has(collection))

  function judge(collection: string, found: readonly string[], isAtRest: boolean): void {
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
      judge(collection, await world.found(collection, everywhere, mode), false)
    },
    async checkAtRest(collection) {
      for (const mode of ['hybrid', 'vector', 'keyword'] as const) {
        judge(collection, await world.found(collection, everywhere, mode), true)
      }
      for (const { id, texts } of membersOf(collection)) {
        const own = texts.at(-1) ?? ''
        const word = own.slice(everywhere.length + 1)
        expect(await world.found(collection, word, 'keyword')).toEqual([`${id}: ${own}`])
        expect(await world.found(collection, own, 'vector')).toContain(`${id}: ${own}`)
      }
    },
  }
}
