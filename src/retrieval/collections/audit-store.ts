import { recordChange } from '#db/audit-entries.ts'
import type { Transaction } from '#jobs/jobs.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Collection, CollectionChange } from './collections.ts'

type Recorded = Omit<Parameters<typeof recordChange>[2], 'resource'> & { readonly id: string }

/** Adds `collection.<action>` to the audit log. */
export function auditCollection(
  transaction: Transaction,
  principal: RequestPrincipal,
  { id, action, ...change }: Recorded,
): Promise<void> {
  const resource = { type: 'collection', id }
  return recordChange(transaction, principal, {
    ...change,
    action: `collection.${action}`,
    resource,
  })
}

const wireNames: Readonly<Record<keyof CollectionChange, string>> = {
  name: 'name',
  title: 'title',
  description: 'description',
  metadata: 'metadata',
  accessMode: 'access_mode',
  folderId: 'folder_id',
  expiresAfterDays: 'expires_after_days',
}

/** The fields of a collection that a change names, as in the API. */
export function auditedFields(
  collection: Pick<Collection, keyof CollectionChange>,
  change: CollectionChange,
): Record<string, unknown> {
  const names = Object.keys(wireNames) as (keyof CollectionChange)[]
  const changed = names.filter((name) => change[name] !== undefined)
  return Object.fromEntries(changed.map((name) => [wireNames[name], collection[name]]))
}
