import { createHash } from 'node:crypto'
import type { JsonObject } from '#lib/json.ts'
import { readObject } from './read-object.ts'
import { metadataFields } from './schema/request.ts'

/** Request headers that change how a request is parsed, or that upstreams get. */

/** The dialect of the protocol, selected by `anthropic-version`. */
export type Dialect = {
  /** Newer dialects have no sampling parameters. */
  readonly hasSampling: boolean
  /** An unknown version, which is read as the newest; for the log. */
  readonly unknownVersion: string | null
}

const olderVersions = ['2023-01-01', '2023-06-01']
const newestVersion = '2026-10-21'

export function readDialect(headers: Headers): Dialect {
  const version = headers.get('anthropic-version')?.trim() || '2023-06-01'
  const hasSampling = olderVersions.includes(version)
  const isKnown = hasSampling || version === newestVersion
  return { hasSampling, unknownVersion: isKnown ? null : version }
}

/** The longest cache key that upstreams accept, in characters. */
const keyCharsMax = 64

const sessionHeader = 'x-claude-code-session-id'

/**
 * The identity of the end user for upstreams. `user_id` may name a person, so only a hash of it is
 * forwarded; the same user and session always have the same.
 */
export function parseEndUser(metadata: JsonObject | undefined, headers: Headers) {
  const { user_id: userId } = readObject(metadataFields, metadata ?? {}, 'metadata')
  const safetyIdentifier = userId ? hash(userId) : null
  const session = headers.get(sessionHeader)?.trim() || null
  const sessionKey = session === null || session.length <= keyCharsMax ? session : hash(session)
  return { safetyIdentifier, promptCacheKey: sessionKey ?? safetyIdentifier }
}

/** 64 hexadecimal digits. */
function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

const forwardedNames = ['anthropic-version', 'anthropic-beta']
const forwardedPrefix = 'x-claude-code-'

/** The headers that are forwarded to upstreams of the same protocol. */
export function forwardedHeaders(headers: Headers): Record<string, string> {
  const forwarded: Record<string, string> = {}
  // An iterator would create a pair per header.
  const all = headers.toJSON()
  for (const name in all) {
    const value = all[name]
    if (value !== undefined && isForwarded(name)) forwarded[name] = value
  }
  return forwarded
}

function isForwarded(name: string): boolean {
  return forwardedNames.includes(name) || name.startsWith(forwardedPrefix)
}
