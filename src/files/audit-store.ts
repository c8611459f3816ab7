import { recordChange } from '#db/audit-entries.ts'
import type { Transaction } from '#jobs/jobs.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { NodeKind } from './tree/checks.ts'

type Recorded = Omit<Parameters<typeof recordChange>[2], 'resource'> & {
  readonly kind: NodeKind | 'collection'
  readonly id: string
}

/** Adds `file.<action>`, `folder.<action>` or `collection.<action>` to the audit log. */
export function auditChange(
  transaction: Transaction,
  principal: RequestPrincipal,
  { kind, id, action, ...change }: Recorded,
): Promise<void> {
  const resource = { type: kind, id }
  return recordChange(transaction, principal, { ...change, action: `${kind}.${action}`, resource })
}
