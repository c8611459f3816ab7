import type { IsExpected } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import { repeat } from '#lib/repeat.ts'
import type { Log } from '#telemetry/log.ts'
import { type Flat, patchBetween } from './flat.ts'
import { createLayers, fits, type Layers } from './layers.ts'
import { type ConfigValues, type SettingsConfig, settingsByKey } from './schema.ts'
import {
  createSettingsStore,
  type Revision,
  type SettingsDatabase,
  type SettingsStore,
} from './store.ts'

/**
 * What administrators set. It is held in memory and follows the database, so that a change acts
 * within a second in every process that shares it.
 */
export type Settings = {
  /** What holds now, for whoever acts by it: read anew at each use, never kept, never written to. */
  current(): ConfigValues
  standing(): Standing
  readonly layers: Layers
  /**
   * Makes a change: `make` gets what stands and says what is to be set. Changes are made one after
   * the other, so that none undoes another that it has not seen. What `make` throws is thrown.
   *
   * Throws `precondition_failed` where it is not meant for what stands.
   */
  change(change: Change, make: (standing: Standing) => Flat): Promise<Changed>
  /** Newest first, from before the revision `before`. */
  history(page: {
    limit: number
    before: number | undefined
  }): Promise<{ revisions: readonly Revision[]; hasMore: boolean }>
  /** What was set after a change; before the first one, which is 0, nothing was. */
  setAfter(revision: number): Promise<Flat | undefined>
  close(): Promise<void>
}

/** What is set at a moment, and what holds by it. */
export type Standing = {
  /** Of the change that led to it; 0 before the first one. */
  readonly revision: number
  readonly set: Flat
  readonly values: ConfigValues
  /** The name of an entity tag that stands for exactly this. */
  readonly tag: string
}

type Change = {
  readonly actorId: string
  /** Whether it is meant for what has this tag. */
  readonly isExpected: IsExpected
  /** Makes nothing, and only says what would be. */
  readonly isDryRun: boolean
}

type Changed = { readonly before: Standing; readonly after: Standing }

export type SettingsDeps = {
  config: SettingsConfig
  database: SettingsDatabase
  log: Pick<Log, 'info' | 'warn'>
  now: () => Date
}

/** Older changes are forgotten. */
const revisionsMax = 500
/** For where a message was lost, and nobody noticed. */
const lookEveryMs = 1_000
const tagHashChars = 16

export async function createSettings(deps: SettingsDeps): Promise<Settings> {
  const { config, database, log } = deps
  const layers = createLayers(config)
  const store = createSettingsStore(database, { revisionsMax })
  const standingAfter = (newest: Newest | undefined) =>
    standingOf(layers, { revision: newest?.revision ?? 0, set: newest?.after ?? new Map() })
  let standing = standingAfter(undefined)

  const take = (newest: Revision | undefined) => {
    if (newest === undefined || newest.revision <= standing.revision) return
    standing = standingAfter(newest)
    for (const [key, value] of newest.after) {
      if (settingsByKey.has(key) && !fits(key, value)) {
        log.warn('a setting is not used: its value is out of bounds', { key })
      }
    }
  }
  const look = async () => take(await store.newerThan(standing.revision))
  const looks = repeat(look, {
    everyMs: lookEveryMs,
    log,
    failed: 'it cannot be seen whether the settings have changed',
  })
  await store.follow(looks.soon)
  await look()

  return {
    current: () => standing.values,
    standing: () => standing,
    layers,
    async change(change, make) {
      const newest = { after: standing.set, revision: standing.revision }
      if (change.isDryRun) return tryChange({ change, make, standingAfter }, newest).changed
      const { changed, kept } = await keepChange(deps, { change, make, standingAfter, store })
      take(kept)
      return changed
    },
    async history({ limit, before }) {
      const revisions = await store.list({ limit: limit + 1, before })
      return { revisions: revisions.slice(0, limit), hasMore: revisions.length > limit }
    },
    async setAfter(revision) {
      return revision === 0 ? new Map() : (await store.find(revision))?.after
    },
    close: looks.stop,
  }
}

function standingOf(layers: Layers, { revision, set }: Pick<Standing, 'revision' | 'set'>) {
  const values = layers.effective(set)
  const hash = new Bun.CryptoHasher('sha256').update(JSON.stringify(values)).digest('hex')
  return { revision, set, values, tag: `${revision}-${hash.slice(0, tagHashChars)}` }
}

type Newest = Pick<Revision, 'revision' | 'after'>

/** One change, whether or not it is kept. */
type Attempt = {
  readonly change: Change
  readonly make: (standing: Standing) => Flat
  readonly standingAfter: (newest: Newest | undefined) => Standing
}

function tryChange(
  { change, make, standingAfter }: Attempt,
  newest: Newest | undefined,
): { changed: Changed; patch: Flat } {
  const before = standingAfter(newest)
  demandExpected(change, before)
  const set = make(before)
  return {
    changed: { before, after: standingAfter({ revision: before.revision, after: set }) },
    patch: patchBetween(before.set, set),
  }
}

/** Keeps a change, unless nothing is changed by it. */
async function keepChange(
  { log, now }: Pick<SettingsDeps, 'log' | 'now'>,
  attempt: Attempt & { store: Pick<SettingsStore, 'add'> },
): Promise<{ changed: Changed; kept: Revision | undefined }> {
  const { change, standingAfter, store } = attempt
  let before: Standing | undefined
  const kept = await store.add((newest) => {
    const { changed, patch } = tryChange(attempt, newest)
    before = changed.before
    if (patch.size === 0) return null
    const sides = { before: changed.before.set, after: changed.after.set }
    return { actorId: change.actorId, patch, ...sides, createdAt: now() }
  })
  const after = standingAfter(kept)
  if (kept !== undefined && after.revision !== before?.revision) {
    const { revision, actorId, patch } = kept
    log.info('settings changed', { revision, actor_id: actorId, keys: [...patch.keys()] })
  }
  return { changed: { before: before ?? after, after }, kept }
}

function demandExpected({ isExpected }: Change, { tag }: Standing): void {
  if (isExpected(tag)) return
  throw new AppError(
    'precondition_failed',
    'The configuration has changed since; read it again before you change it.',
  )
}
