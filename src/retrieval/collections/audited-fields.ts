import type { Collection, CollectionChange } from './collections.ts'

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
