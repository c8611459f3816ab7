import { recordChange } from '#db/audit-entries.ts'
import type { Transaction } from '#jobs/jobs.ts'
import { actingPrincipal, type RequestContext } from '#lib/request-context.ts'

type Recorded = Omit<Parameters<typeof recordChange>[2], 'resource'> & { readonly id: string }

/** Adds `reindex.<action>` to the audit log. */
export function auditReindex(
  transaction: Transaction,
  context: RequestContext,
  { id, action, ...change }: Recorded,
): Promise<void> {
  const resource = { type: 'reindex', id }
  const entry = { ...change, action: `reindex.${action}`, resource }
  return recordChange(transaction, actingPrincipal(context), entry)
}
