import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isAlive, killProcess } from '#test/support/process.ts'
import type { Book } from '../record.ts'
import { type ModelServer, startModelServer } from './model-server.ts'
import { type OwnPostgres, postgresPrograms, startOwnPostgres } from './own-postgres.ts'
import { type Replica, startReplicas } from './replicas.ts'
import { type Slowness, watchSlowness } from './slowness.ts'
import { mountSmallDisk, type SmallDisk } from './small-disk.ts'
import { startWebhookReceiver, type WebhookReceiver } from './webhook-receiver.ts'

/** `isOrderly`: a worker whose supervisor was killed, which writes what it has before it ends. */
type Kill = { readonly pid: number; readonly atMs: number; readonly isOrderly: boolean }

/** A stop at which requests were still running after the drain period: the gateway logs that it cuts them. */
type Cut = { readonly beganMs: number }

/** Everything that runs: two replicas on one database, their disk, and the upstreams. */
export type Site = {
  readonly postgres: OwnPostgres
  readonly slowness: Slowness
  readonly disk: SmallDisk
  readonly dataFolder: string
  readonly temporaryFolder: string
  readonly upstreams: readonly ModelServer[]
  readonly webhooks: WebhookReceiver
  readonly replicas: readonly Replica[]
  /** Processes that were killed, for what they may have lost. */
  readonly kills: Kill[]
  readonly cuts: Cut[]
  readonly frozen: Set<number>
  /** Addresses to which clients send; a load balancer would know them by `/readyz`. */
  readonly rotation: string[]
  isDatabaseDown: boolean
  isReplicaDown: boolean
  kill(pid: number): void
  thaw(pid: number): void
  killSupervisor(replica: Replica): Promise<void>
  /** Out of the rotation, then SIGTERM; a violation if it does not exit cleanly. */
  stopReplica(replica: Replica): Promise<void>
  startReplica(replica: Replica): Promise<void>
  close(): Promise<void>
}

/** Requests that were sent a moment ago reach the replica. */
const rotationMs = 500
const startsMax = 5
/** Of its log, for a stop that failed. */
const stopLinesMax = 12

/** Null without an installed PostgreSQL. */
export async function startSite(folder: string, book: Book): Promise<Site | null> {
  const programs = postgresPrograms()
  if (programs === null) return null
  const disk = mountSmallDisk(join(folder, 'disk'))
  const dataFolder = join(disk.folder, 'data')
  const temporaryFolder = join(disk.folder, 'tmp')
  for (const each of [dataFolder, temporaryFolder]) mkdirSync(each, { recursive: true })
  const postgres = await startOwnPostgres(programs, join(folder, 'postgres'))
  const upstreams = ['alpha', 'beta'].map((name) => startModelServer(name))
  const webhooks = startWebhookReceiver()
  const replicas = await startReplicas({
    names: ['replica-0', 'replica-1'],
    databaseUrl: postgres.url,
    dataFolder,
    temporaryFolder,
    configFolder: folder,
    upstreams,
  })
  const kills: Kill[] = []
  const cuts: Cut[] = []
  const frozen = new Set<number>()
  const rotation = replicas.map(({ url }) => url)
  const slowness = watchSlowness(postgres.url)
  return {
    postgres,
    slowness,
    disk,
    dataFolder,
    temporaryFolder,
    upstreams,
    webhooks,
    replicas,
    kills,
    cuts,
    frozen,
    rotation,
    isDatabaseDown: false,
    isReplicaDown: false,
    kill(pid) {
      kills.push({ pid, atMs: performance.now(), isOrderly: false })
      if (isAlive(pid)) killProcess(pid)
    },
    thaw(pid) {
      if (isAlive(pid)) killProcess(pid, 'SIGCONT')
    },
    async killSupervisor(replica) {
      const atMs = performance.now()
      for (const pid of replica.workers()) kills.push({ pid, atMs, isOrderly: true })
      await replica.killSupervisor()
    },
    async startReplica(replica) {
      // As a process manager does: a start fails where the database does not respond in time.
      for (let tries = 1; ; tries++) {
        try {
          await replica.start()
          break
        } catch (error) {
          if (tries === startsMax) throw error
        }
      }
      if (!rotation.includes(replica.url)) rotation.push(replica.url)
    },
    async stopReplica(replica) {
      rotation.splice(rotation.indexOf(replica.url), 1)
      await Bun.sleep(rotationMs)
      const beganMs = performance.now()
      const workers = replica.workers()
      const code = await replica.stop()
      const log = replica.runs.at(-1)?.log() ?? []
      if (log.some(({ message }) => message === 'requests aborted at shutdown')) {
        cuts.push({ beganMs })
      }
      // The exit code is that of its workers.
      const wasKilled = kills.some(({ pid, atMs }) => atMs >= beganMs && workers.includes(pid))
      if (code === 0 || wasKilled) return
      const lines = log.slice(-stopLinesMax).map((line) => JSON.stringify(line))
      book.violate(
        'a stopped replica exits cleanly',
        `${replica.name}: ${code}\n${lines.join('\n')}`,
      )
    },
    async close() {
      for (const upstream of upstreams) await upstream.stop()
      await webhooks.stop()
      await slowness.stop()
      await postgres.stop().catch(() => {})
      disk.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
