import type { Config } from '#config/schema.ts'
import type { Transaction } from '#db/client.ts'
import { type IsExpected, requireExpected } from '#lib/entity-tag.ts'
import { type Page, pageOf } from '#lib/page.ts'
import { repeat } from '#lib/repeat.ts'
import type { Log } from '#telemetry/log.ts'
import { createLayers, matchesSchema } from './layers.ts'
import { type Flat, patchBetween } from './patch.ts'
import { type ConfigValues, settingsByKey } from './schema.ts'
import {
  createSettingsStore,
  type HistoryPage,
  type ListedRevision,
  type Revision,
  type SettingsDatabase,
} from './store.ts'

export type Settings = Awaited<ReturnType<typeof createSettings>>

export type SettingsState = {
  /** Of the last change; 0: none yet. */
  readonly revision: number
  /** What administrators have set, without the other layers. */
  readonly overrides: Flat
  readonly values: ConfigValues
  /** The entity tag. */
  readonly tag: string
}

type Change = {
  readonly actorId: string
  /** The `If-Match` condition. */
  readonly isExpected: IsExpected
  readonly isDryRun: boolean
}

type Changed = { readonly before: SettingsState; readonly after: SettingsState }

export type SettingsDeps = {
  config: Config
  database: SettingsDatabase
  log: Pick<Log, 'info' | 'warn'>
  now: () => Date
}

/** Older revisions are deleted. */
const revisionsMax = 500
/** Polling covers lost notifications. */
const pollEveryMs = 1_000
const tagHashChars = 16

/**
 * The settings of administrators, cached in memory. A change in any process takes effect in all
 * processes on the same database within a second.
 */
export async function createSettings(deps: SettingsDeps) {
  const { config, database, log, now } = deps
  let layers = createLayers(config)
  const store = createSettingsStore(database, { revisionsMax })
  const stateAfter = (last: Pick<Revision, 'revision' | 'after'> | undefined): SettingsState => {
    const { revision, after: overrides } = last ?? { revision: 0, after: new Map() }
    const values = layers.effective(overrides)
    const hash = new Bun.CryptoHasher('sha256').update(JSON.stringify(values)).digest('hex')
    return { revision, overrides, values, tag: `${revision}-${hash.slice(0, tagHashChars)}` }
  }
  let state = stateAfter(undefined)

  const adopt = (last: Revision | undefined) => {
    if (last === undefined || last.revision <= state.revision) return
    state = stateAfter(last)
    for (const [key, value] of last.after) {
      if (settingsByKey.has(key) && !matchesSchema(key, value)) {
        log.warn('setting ignored: value out of bounds', { key })
      }
    }
  }
  const poll = async () => adopt(await store.newerThan(state.revision))
  const polling = repeat(poll, { everyMs: pollEveryMs, log, failed: 'settings poll failed' })
  await store.follow(polling.soon)
  await poll()

  /** Computes a change without storing it. */
  const evaluate = (
    change: Change,
    make: (state: SettingsState) => Flat,
    before: SettingsState,
  ): Changed => {
    const stale = 'The configuration has changed; read it again before you change it.'
    requireExpected(change.isExpected, before.tag, stale)
    return { before, after: stateAfter({ revision: before.revision, after: make(before) }) }
  }

  return {
    current: (): ConfigValues => state.values,
    state: () => state,
    /** Of the configuration in effect. */
    get layers() {
      return layers
    },
    /** The values of administrators stay above those of the changed file. */
    reload(next: Config): () => void {
      const nextLayers = createLayers(next)
      return () => {
        layers = nextLayers
        state = stateAfter({ revision: state.revision, after: state.overrides })
      }
    },

    /**
     * Applies a change: `make` gets the current state and returns the new overrides. Changes are
     * serialised. `follow` makes changes that depend on it, in the same transaction. Throws what both
     * throw, and `precondition_failed` for a stale `If-Match`.
     */
    async change(
      change: Change,
      make: (state: SettingsState) => Flat,
      follow: (transaction: Transaction, changed: Changed) => Promise<void> = async () => {},
    ): Promise<Changed> {
      if (change.isDryRun) return evaluate(change, make, state)
      let before: SettingsState | undefined
      const last = await store.add(async (newest, transaction) => {
        const changed = evaluate(change, make, stateAfter(newest))
        before = changed.before
        const sides = { before: before.overrides, after: changed.after.overrides }
        const patch = patchBetween(sides.before, sides.after)
        if (patch.size === 0) return null
        await follow(transaction, changed)
        return { actorId: change.actorId, patch, ...sides, createdAt: now() }
      })
      const after = stateAfter(last)
      if (last !== undefined && last.revision !== before?.revision) {
        const { revision, actorId, patch } = last
        log.info('settings changed', { revision, actor_id: actorId, keys: [...patch.keys()] })
      }
      adopt(last)
      return { before: before ?? after, after }
    },

    /** Newest first, from before the revision `before`. */
    async history({ limit, before }: HistoryPage): Promise<Page<ListedRevision>> {
      return pageOf(await store.list({ limit: limit + 1, before }), limit)
    },

    /** The overrides after a change; empty for revision 0, undefined for an unknown one. */
    async overridesAfter(revision: number): Promise<Flat | undefined> {
      return revision === 0 ? new Map() : (await store.find(revision))?.after
    },
    close: polling.stop,
  }
}
