import type { Config } from '#config/schema.ts'
import { repeat } from '#lib/repeat.ts'
import type { Log } from '#telemetry/log.ts'
import { endAsLost } from './lost.ts'
import { isOver, type ResponseStatus } from './response.ts'
import type { ResponseStore } from './store.ts'
import type { OrphanedResponse } from './stored.ts'

/** What keeps the database true: signs of life, an end for what nobody runs, an end for the old. */
export type Recovery = { close(): Promise<void> }

export type RecoveryDeps = {
  store: Pick<
    ResponseStore,
    'beat' | 'findLost' | 'findStrays' | 'endLost' | 'readLog' | 'progress' | 'sweep'
  >
  runnerId: string
  settings: Pick<Config['responses'], 'lostAfterMs'>
  /** The database has no other runner, so that whatever was running when we began is lost. */
  soleProcess: boolean
  /** All that this process has to do with. */
  known(): readonly string[]
  /** Those that are in progress, as the database knows. */
  kept(): readonly string[]
  /** Such a response is no longer in progress there: deleted, or ended by somebody else. */
  endedElsewhere(id: string, how: 'deleted' | ResponseStatus): void
  log: Pick<Log, 'warn' | 'info'>
  now: () => Date
}

const lookEveryMs = 1_000
const sweepEveryMs = 60_000
/** Responses that one look ends. */
const lostAtOnceMax = 32
const roundsAtStartMax = 1_000
const idsPerQuestionMax = 1_000

export async function startRecovery(deps: RecoveryDeps): Promise<Recovery> {
  const { store, log, settings } = deps
  const life = createLife(deps)
  const strays = createStrays(deps)
  const repeated = [
    repeat(life.beat, {
      everyMs: settings.lostAfterMs / 3,
      log,
      failed: 'this worker cannot say that it lives',
    }),
    repeat(look, { everyMs: lookEveryMs, log, failed: 'lost responses cannot be looked for' }),
    repeat(() => store.sweep(deps.now()), {
      everyMs: sweepEveryMs,
      log,
      failed: 'old responses cannot be deleted',
    }),
  ]

  async function look() {
    await checkOwn(deps)
    await endAll(await strays.find())
    if (!life.mayJudge()) return
    const before = new Date(deps.now().getTime() - settings.lostAfterMs)
    await endAll(await store.findLost(before, lostAtOnceMax))
  }

  async function endAll(lost: readonly OrphanedResponse[]) {
    for (const response of lost) {
      const ended = await endAsLost(store, response)
      if (ended) log.info('a lost response was ended', { response_id: response.id })
    }
  }

  async function begin() {
    await life.beat()
    if (!deps.soleProcess) return
    for (let round = 0; round < roundsAtStartMax; round++) {
      const lost = await store.findLost(deps.now(), lostAtOnceMax)
      await endAll(lost)
      if (lost.length < lostAtOnceMax) return
    }
  }

  await begin().catch((error: unknown) => {
    log.warn('lost responses could not be looked for at the start', { error })
  })
  return {
    async close() {
      await Promise.all(repeated.map((each) => each.stop()))
    },
  }
}

/**
 * Responses that this process runs as the database has it, and does not: their end could not be
 * written, or the answer to a claim was lost. One look may be too early, the second is not.
 */
function createStrays({ store, runnerId, known }: RecoveryDeps) {
  let suspected = new Set<string>()
  return {
    async find(): Promise<readonly OrphanedResponse[]> {
      const found = await store.findStrays({ id: runnerId, known: known() }, lostAtOnceMax)
      const strays = found.filter(({ id }) => suspected.has(id))
      suspected = new Set(found.map(({ id }) => id))
      return strays
    },
  }
}

/** Our own signs of life, and whether the lack of them in others says anything. */
function createLife({ store, runnerId, settings }: RecoveryDeps) {
  let beatAt = Number.NEGATIVE_INFINITY
  let unbrokenSince = 0
  return {
    async beat() {
      await store.beat(runnerId)
      const now = performance.now()
      if (now - beatAt > settings.lostAfterMs) unbrokenSince = now
      beatAt = now
    },
    /** While the database was away nobody could give a sign: all get the time to do so first. */
    mayJudge() {
      const now = performance.now()
      if (now - beatAt > settings.lostAfterMs) return false
      return now - unbrokenSince > (settings.lostAfterMs * 2) / 3
    },
  }
}

/** A message that a response was ended may be lost; what the database says is not. */
async function checkOwn({ store, kept, endedElsewhere }: RecoveryDeps): Promise<void> {
  const ids = kept()
  for (let at = 0; at < ids.length; at += idsPerQuestionMax) {
    const asked = ids.slice(at, at + idsPerQuestionMax)
    const found = new Map((await store.progress(asked)).map((answer) => [answer.id, answer.status]))
    for (const id of asked) {
      const status = found.get(id)
      if (status === undefined) endedElsewhere(id, 'deleted')
      else if (isOver(status)) endedElsewhere(id, status)
    }
  }
}
