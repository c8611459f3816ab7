import type { Actor } from '#audit/audit.ts'
import type { ConfigFile } from '#config/config-file.ts'
import { ConfigError } from '#config/load.ts'
import { planReload } from '#config/reload-plan.ts'
import type { Config } from '#config/schema.ts'
import type { Log } from '#telemetry/log.ts'
import type {
  ConfigFiles,
  Initiator,
  ReloadMessage,
  ReloadReport,
  SupervisorMessage,
  WorkerReport,
} from './messages.ts'

/** How long a worker may take before it is reported as unresponsive. It still follows. */
const replyMaxMs = 10_000

export type Coordinator = ReturnType<typeof createCoordinator>

export type CoordinatorDeps = {
  readonly files: ConfigFiles
  /** In effect. */
  readonly config: Config
  readonly readFile: () => ConfigFile
  /** Throws a `ConfigError`. */
  readonly load: (file: ConfigFile) => Config
  /** Rules between keys; what a reload leaves and what it changes must fit together. */
  readonly faultsOf: (config: Config) => readonly string[]
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
  readonly onAccepted: (config: Config) => void
  readonly replyMs?: number
}

type Worker = {
  readonly pid: number
  readonly send: (message: SupervisorMessage) => void
  isReady: boolean
  /** Reloads that it has not confirmed, by id. */
  readonly pending: Map<number, (report: WorkerReport) => void>
}

/**
 * Reloads the configuration file in all workers of this machine. The file is read and validated once;
 * every worker gets the same text, and so does a worker that starts later. One reload runs at a time
 * and at most one waits, so the last request is always followed by a reading of the file.
 */
export function createCoordinator(deps: CoordinatorDeps) {
  const { log, replyMs = replyMaxMs } = deps
  const workers = new Set<Worker>()
  let { files, config } = deps
  let active: Promise<unknown> = Promise.resolve()
  let waiting: Promise<ReloadReport> | null = null
  let isStopping = false
  let reloads = 0

  const run = async (initiator: Initiator, from: Worker | null): Promise<ReloadReport> => {
    if (isStopping) return { outcome: 'stopping' }
    const file = deps.readFile()
    const loaded = load(file)
    if ('faults' in loaded) {
      log.error('configuration not reloaded, it is not valid', { faults: loaded.faults })
      return { outcome: 'invalid', faults: loaded.faults }
    }
    const { changed, needsRestart } = loaded
    config = loaded.config
    files = { ...files, accepted: file }
    deps.onAccepted(config)
    const recorder = from ?? [...workers].find(({ isReady }) => isReady)
    const reports = await Promise.all(
      [...workers].map((worker) => relay(worker, file, worker === recorder ? initiator : null)),
    )
    const report = {
      outcome: 'reloaded',
      file: file.text === null ? null : file.path,
      changed,
      needsRestart,
      workers: reports,
    } as const
    logReload(report, log)
    return report
  }

  const load = (file: ConfigFile) => {
    try {
      // Without the file, everything would return to its default.
      if (file.text === null && files.accepted.text !== null && file.fault === null) {
        return { faults: [`${file.path}: no such file.`] }
      }
      const plan = planReload(config, deps.load(file))
      const faults = deps.faultsOf(plan.config)
      if (faults.length === 0) return plan
      const keys = plan.needsRestart.join(', ')
      return { faults: [...faults, `These changed keys need a restart: ${keys}.`] }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      return { faults: error.faults }
    }
  }

  const relay = (
    worker: Worker,
    file: ConfigFile,
    initiator: Initiator | null,
  ): Promise<WorkerReport> => {
    const id = ++reloads
    const { pid, isReady, pending } = worker
    const order = { type: 'reload', id, file, initiator } as const
    if (!isReady) {
      worker.send(order)
      // It follows before it listens.
      return Promise.resolve({ pid, state: 'starting', fault: null })
    }
    return new Promise((resolve) => {
      const timer = setTimeout(() => end({ pid, state: 'unresponsive', fault: null }), replyMs)
      const end = (report: WorkerReport) => {
        clearTimeout(timer)
        pending.delete(id)
        resolve(report)
      }
      pending.set(id, end)
      worker.send(order)
    })
  }

  const request = (actor: Actor | null, from: Worker | null): Promise<ReloadReport> => {
    waiting ??= active.then(() => {
      waiting = null
      const report = run({ actor }, from)
      active = report.catch(() => {})
      return report
    })
    return waiting
  }

  return {
    files: () => files,

    /** Reads the file again. Never rejects because of the file. */
    reload: (actor: Actor | null = null): Promise<ReloadReport> => request(actor, null),

    connect(pid: number, send: Worker['send']) {
      const worker: Worker = { pid, send, isReady: false, pending: new Map() }
      workers.add(worker)
      return {
        ready() {
          worker.isReady = true
        },
        received(message: ReloadMessage) {
          const { id } = message
          if (message.type === 'reloaded') {
            const { fault } = message
            const state = fault === null ? 'reloaded' : 'failed'
            worker.pending.get(id)?.({ pid, state, fault })
            return
          }
          void request(message.actor, worker).then((report) => {
            if (workers.has(worker)) send({ type: 'reload-report', id, report })
          })
        },
        exited() {
          workers.delete(worker)
          for (const end of worker.pending.values()) end({ pid, state: 'stopped', fault: null })
        },
      }
    },

    /** Further requests change nothing. */
    stop() {
      isStopping = true
    },
  }
}

function logReload(report: ReloadReport & { outcome: 'reloaded' }, log: CoordinatorDeps['log']) {
  const { file, changed, needsRestart, workers } = report
  log.info('configuration reloaded', { file, changed: changed.map(({ key }) => key) })
  if (needsRestart.length > 0) {
    log.warn('changed keys need a restart and keep their values', { keys: needsRestart })
  }
  for (const { pid, state, fault } of workers) {
    if (state !== 'failed' && state !== 'unresponsive') continue
    log.error('worker has not reloaded its configuration', { pid, state, fault })
  }
}
