import { createHash } from 'node:crypto'
import type { JsonObject } from '#lib/json.ts'
import { createReader } from './read-object.ts'
import { metadataFields } from './schema.ts'

const readMetadata = createReader(metadataFields)

/** The longest key that upstreams take, in characters. */
const keyCharsMax = 64

const sessionHeader = 'x-claude-code-session-id'
/** What an upstream of the same protocol may see: the header itself, or all that begin with it. */
const forwardedNames = ['anthropic-version', 'anthropic-beta']
const forwardedPrefix = 'x-claude-code-'

/**
 * Whose request it is, as far as upstreams are told. What a client says of its user may name a
 * person, so only a hash of it goes on; the same user and session always have the same.
 */
export function parseCaller(metadata: JsonObject | undefined, headers: Headers) {
  const { user_id: userId } = readMetadata(metadata ?? {}, 'metadata')
  const safetyIdentifier = userId ? hash(userId) : null
  const session = headers.get(sessionHeader)?.trim() || null
  const sessionKey = session === null || session.length <= keyCharsMax ? session : hash(session)
  return { safetyIdentifier, promptCacheKey: sessionKey ?? safetyIdentifier }
}

/** The headers that go on to an upstream of the same protocol. */
export function forwardedHeaders(headers: Headers): Record<string, string> {
  return Object.fromEntries(
    [...headers].filter(
      ([name]) => forwardedNames.includes(name) || name.startsWith(forwardedPrefix),
    ),
  )
}

/** 64 hexadecimal digits. */
function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
