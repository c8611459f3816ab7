import type { Actor } from '#audit/audit.ts'
import { AppError } from '#lib/errors.ts'
import { withTimeLimit } from '#lib/time-limit.ts'
import { StartError } from '#start-error.ts'
import type { ConfigFiles, ReloadMessage, ReloadReport, SupervisorMessage } from './messages.ts'

/** More than a reload in progress and the next one may take together. */
const reportMaxMs = 30_000

type ReloadOrder = SupervisorMessage & { type: 'reload' }

export type SupervisorLink = {
  /** What to start with. */
  readonly files: Promise<ConfigFiles>
  /** Messages that arrive earlier wait. */
  onReload(follow: (order: ReloadOrder) => Promise<string | null>): void
  /** Asks the supervisor for a reload in all workers. */
  reload(actor: Actor | null): Promise<ReloadReport>
}

/** The messages of the supervisor; null in a worker that was started by hand. */
export function openSupervisorLink(): SupervisorLink | null {
  if (process.send === undefined) return null
  const send = (message: ReloadMessage) => process.send?.(message)
  const files = Promise.withResolvers<ConfigFiles>()
  const follower = Promise.withResolvers<(order: ReloadOrder) => Promise<string | null>>()
  const reports = new Map<number, (report: ReloadReport) => void>()
  let requests = 0
  process.on('message', (message: SupervisorMessage) => {
    if (message.type === 'config') files.resolve(message.files)
    else if (message.type === 'reload-report') reports.get(message.id)?.(message.report)
    else if (message.type === 'reload') {
      const { id } = message
      void follower.promise
        .then((follow) => follow(message))
        .then((fault) => send({ type: 'reloaded', id, fault }))
    }
  })
  process.on('disconnect', () => files.reject(new StartError('The supervisor has exited.')))
  return {
    files: files.promise,
    onReload: follower.resolve,
    async reload(actor) {
      const id = ++requests
      const report = Promise.withResolvers<ReloadReport>()
      reports.set(id, report.resolve)
      try {
        send({ type: 'reload-request', id, actor })
        return await withTimeLimit(report.promise, reportMaxMs, noReport)
      } finally {
        reports.delete(id)
      }
    },
  }
}

function noReport(): AppError {
  return new AppError('service_unavailable', 'The supervisor does not respond; retry.', {
    retryAfterS: 5,
  })
}
