import type { Actor } from '#audit/audit.ts'
import { type CoordinatorDeps, createCoordinator } from './coordinator.ts'
import { createFollower } from './follow.ts'
import type { ReloadReport, SupervisorMessage } from './messages.ts'
import type { SupervisorLink } from './supervisor-link.ts'

/** Reloads the configuration in every worker of this machine. */
export type Reloads = { reload(actor: Actor | null): Promise<ReloadReport> }

type WorkerReloadsDeps = Omit<CoordinatorDeps, 'onAccepted'> & {
  /** Null: this worker runs alone. */
  readonly link: SupervisorLink | null
  readonly onChanged: CoordinatorDeps['onAccepted']
}

/** The worker's end of reloads; one without a supervisor coordinates itself. */
export function createWorkerReloads({ link, onChanged, ...deps }: WorkerReloadsDeps) {
  const { follow, start } = createFollower({ ...deps, onChanged })
  if (link !== null) {
    link.onReload(({ file, initiator }) => follow(file, initiator))
    return { reloads: { reload: link.reload }, start }
  }
  const coordinator = createCoordinator({ ...deps, onAccepted() {} })
  const own = coordinator.connect(process.pid, (message: SupervisorMessage) => {
    if (message.type !== 'reload') return
    const { id, file, initiator } = message
    void follow(file, initiator).then((fault) => own.received({ type: 'reloaded', id, fault }))
  })
  own.ready()
  return { reloads: { reload: coordinator.reload }, start }
}
