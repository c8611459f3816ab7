import { basePermission } from '#auth/permissions.ts'
import type { Scope } from '#auth/scopes.ts'
import type { Endpoint } from './endpoint.ts'

/** The scope that an API key needs for the endpoints of a tag; null: none. */
const scopesByTag: Readonly<Record<string, Scope | null>> = {
  Agents: 'inference',
  Applications: 'inference',
  Batches: 'inference',
  Conversations: 'inference',
  Messages: 'inference',
  Models: 'inference',
  Responses: 'inference',
  Collections: 'files',
  Files: 'files',
  Sharing: 'files',
  Uploads: 'files',
  'Vector stores': 'files',
  Speech: 'speech',
  'API keys': 'admin',
  Configuration: 'admin',
  Directory: 'admin',
  Embeddings: 'admin',
  'Model installer': 'admin',
  Sessions: 'admin',
  Upstreams: 'admin',
  Usage: 'admin',
  Webhooks: 'admin',
  Branding: null,
  Console: null,
  Operations: null,
  Translations: null,
}

/**
 * The scope of an endpoint: its own if it declares one, `admin` with any permission beyond the base
 * permission, otherwise that of its tag. An unknown tag needs `admin`; a test requires every tag.
 */
export function scopeOf({
  permission,
  tag,
  scope,
}: Pick<Endpoint, 'permission' | 'tag' | 'scope'>): Scope | null {
  if (permission === 'public') return null
  if (scope !== undefined) return scope
  if (permission !== basePermission) return 'admin'
  const ofTag = scopesByTag[tag]
  return ofTag === undefined ? 'admin' : ofTag
}

export function hasScope(tag: string): boolean {
  return Object.hasOwn(scopesByTag, tag)
}
