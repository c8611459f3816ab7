import type { Static } from '@sinclair/typebox'
import type { KeyRecord } from './key-store.ts'
import type { ApiKeyRecord, createdApiKey } from './schema.ts'

export function renderKey(record: KeyRecord): ApiKeyRecord {
  const { id, name, masked, lastUsedAt } = record
  return {
    id,
    name,
    masked,
    ...renderTimes(record),
    last_used_at: lastUsedAt?.toISOString() ?? null,
  }
}

/** The one answer with the key itself. */
export function renderNewKey(record: KeyRecord & { key: string }): Static<typeof createdApiKey> {
  const { id, name, masked, key } = record
  return { id, name, masked, ...renderTimes(record), key }
}

function renderTimes({ createdAt, expiresAt }: KeyRecord) {
  return { created_at: createdAt.toISOString(), expires_at: expiresAt?.toISOString() ?? null }
}
