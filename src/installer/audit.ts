import { recordChange } from '#db/audit-entries.ts'
import type { Transaction } from '#db/client.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { taskSource } from './names.ts'
import type { Download } from './store.ts'

/** Adds `model_download.<action>` to the audit log, in the transaction of the change. */
export function recordDownload(
  transaction: Transaction,
  principal: RequestPrincipal,
  change: { action: string; before?: Download; after: Download; at: Date },
): Promise<void> {
  const { action, before, after, at } = change
  const { model, task, status, wanted } = after
  const source = taskSource(task)
  return recordChange(transaction, principal, {
    kind: 'model_download',
    id: after.id,
    action,
    before: before === undefined ? null : { status: before.status, wanted: before.wanted },
    after: { model, source, status, wanted },
    at,
  })
}
