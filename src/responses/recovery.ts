import type { Config } from '#config/schema.ts'
import { repeat } from '#lib/repeat.ts'
import type { Log } from '#telemetry/log.ts'
import { failOrphan, type LogRendering, workerLost } from './ending.ts'
import { isTerminal, type ResponseStatus } from './response.ts'
import type { ResponseMessage } from './runs.ts'
import type { ResponseStore } from './store.ts'
import type { OrphanedResponse } from './stored.ts'
import { storedInPart, type UnstoredResponses } from './unstored.ts'

type RecoveryDeps = {
  store: ResponseStore
  rendering: LogRendering
  runnerId: string
  settings: Config['responses']
  /** No other process uses the database: responses in progress at the start are orphans. */
  soleProcess: boolean
  /** All responses that this worker runs or is about to run. */
  localIds(): readonly string[]
  /** Those that the database holds as in progress. */
  storedIds(): readonly string[]
  unstored: UnstoredResponses
  /** Tells other workers. */
  announce(message: ResponseMessage): Promise<void>
  /** The database no longer holds such a response as in progress. */
  onEndedInDatabase(id: string, how: 'deleted' | ResponseStatus): void
  log: Log
  now: () => Date
}

const checkEveryMs = 1_000
const sweepEveryMs = 60_000
const orphansPerCheckMax = 32
const roundsAtStartMax = 1_000
const idsPerQueryMax = 1_000

/** Sends this worker's heartbeats, ends orphaned responses and deletes expired ones. */
export async function startRecovery(deps: RecoveryDeps) {
  const { store, log, rendering, runnerId, settings } = deps
  const heartbeat = createHeartbeat(deps)
  let suspects = new Set<string>()

  async function check() {
    await checkLocal(deps)
    await failAll(await findUntracked())
    await deps.unstored.announce((response) => deps.announce({ what: 'unstored', ...response }))
    if (!heartbeat.isTrusted()) return
    await failAll(await store.findOrphans(settings, orphansPerCheckMax))
  }

  /**
   * Responses that this worker runs according to the database, and does not: their end could not be
   * written, or the reply to a claim was lost. Confirmed by a second check, because a claim may be
   * under way during the first.
   */
  async function findUntracked(): Promise<readonly OrphanedResponse[]> {
    const runner = { id: runnerId, known: deps.localIds() }
    const found = await store.findUntracked(runner, orphansPerCheckMax)
    const confirmed = found.filter(({ id }) => suspects.has(id))
    suspects = new Set(found.map(({ id }) => id))
    return confirmed
  }

  async function failAll(orphans: readonly OrphanedResponse[]) {
    for (const orphan of orphans) {
      const error = deps.unstored.has(orphan.id) ? storedInPart() : workerLost()
      const isEnded = await failOrphan(store, orphan, { rendering, error })
      if (isEnded) log.info('orphaned response ended', { response_id: orphan.id })
      else if (!deps.soleProcess) await store.endTransactions(settings)
    }
  }

  async function recoverAtStart() {
    await heartbeat.send()
    if (!deps.soleProcess) return
    for (let round = 0; round < roundsAtStartMax; round++) {
      const everyRunner = { lostAfterMs: 0, frozenMaxMs: 0 }
      const orphans = await store.findOrphans(everyRunner, orphansPerCheckMax)
      await failAll(orphans)
      if (orphans.length < orphansPerCheckMax) return
    }
  }

  const repeated = [
    repeat(heartbeat.send, {
      everyMs: settings.lostAfterMs / 3,
      log,
      failed: 'worker heartbeat failed',
    }),
    repeat(check, { everyMs: checkEveryMs, log, failed: 'orphan check failed' }),
    repeat(() => store.sweep(deps.now()), {
      everyMs: sweepEveryMs,
      log,
      failed: 'sweep of expired responses failed',
    }),
  ]
  await recoverAtStart().catch((error: unknown) => {
    log.warn('orphan check at start failed', { error })
  })
  return {
    async close() {
      await Promise.all(repeated.map((each) => each.stop()))
    },
  }
}

function createHeartbeat({ store, runnerId, settings }: RecoveryDeps) {
  let sentAt = Number.NEGATIVE_INFINITY
  let unbrokenSince = 0
  return {
    async send() {
      await store.heartbeat(runnerId)
      const now = performance.now()
      if (now - sentAt > settings.lostAfterMs) unbrokenSince = now
      sentAt = now
    },
    /**
     * Whether missing heartbeats of other workers mean anything: after a database outage, all get
     * time to send one first.
     */
    isTrusted() {
      const now = performance.now()
      if (now - sentAt > settings.lostAfterMs) return false
      return now - unbrokenSince > (settings.lostAfterMs * 2) / 3
    },
  }
}

/** Notices ended or deleted responses whose notification was lost. */
async function checkLocal({ store, storedIds, onEndedInDatabase }: RecoveryDeps): Promise<void> {
  const ids = storedIds()
  for (let at = 0; at < ids.length; at += idsPerQueryMax) {
    const batch = ids.slice(at, at + idsPerQueryMax)
    const found = new Map((await store.progress(batch)).map((row) => [row.id, row.status]))
    for (const id of batch) {
      const status = found.get(id)
      if (status === undefined) onEndedInDatabase(id, 'deleted')
      else if (isTerminal(status)) onEndedInDatabase(id, status)
    }
  }
}
