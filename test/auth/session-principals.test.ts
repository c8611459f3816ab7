import { beforeEach, describe, expect, test } from 'bun:test'
import { createSessionSecret, hashSecret } from '#auth/session-cookie.ts'
import { createSessionPrincipals } from '#auth/session-principals.ts'
import type { StoredSession } from '#auth/session-store.ts'
import { AppError } from '#lib/errors.ts'
import { quietLog } from '#test/support/quiet-log.ts'

const idleMs = 600_000
const minuteMs = 60_000

const secret = createSessionSecret()
let nowMs: number
let stored: StoredSession
let lookUps: number
let renewals: string[]
let sessions: ReturnType<typeof createSessionPrincipals>

const at = (ms: number) => new Date(nowMs + ms)

beforeEach(() => {
  nowMs = Date.UTC(2026, 10, 23)
  lookUps = 0
  renewals = []
  stored = {
    sessionId: 'session',
    userId: 'user',
    subject: 'ann',
    name: null,
    disabledAt: null,
    membership: { idpGroups: [], manual: [] },
    method: 'oidc',
    userAgent: '',
    createdAt: at(0),
    lastUsedAt: at(0),
    expiresAt: at(10 * idleMs),
    renewAt: null,
  }
  sessions = createSessionPrincipals({
    store: {
      async findSession(hash) {
        lookUps++
        return Buffer.from(hash).equals(hashSecret(secret)) ? { ...stored } : undefined
      },
      async markSessionsUsed() {},
    },
    groups: { of: () => ({ groups: [], permissions: new Set() }) },
    cacheMs: 60 * minuteMs,
    idleMs,
    now: () => at(0),
    log: quietLog,
  })
})

async function outcome(given = secret): Promise<string> {
  try {
    return (await sessions.authenticate(given)).userId
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return error.wireCode
  }
}

describe('a session', () => {
  test('is looked up once while it is in use', async () => {
    expect([await outcome(), await outcome()]).toEqual(['user', 'user'])
    expect(lookUps).toBe(1)
  })

  test('that is unknown, or no secret of a session, is refused', async () => {
    expect(await outcome(createSessionSecret())).toBe('invalid_session')
    expect(lookUps).toBe(1)
    expect(await outcome('nonsense')).toBe('invalid_session')
    expect(lookUps).toBe(1)
  })

  test('ends when it was idle, unless another replica saw a use', async () => {
    nowMs += idleMs - 1
    expect(await outcome()).toBe('user')
    nowMs += idleMs
    expect(await outcome()).toBe('invalid_session')
    stored = { ...stored, lastUsedAt: at(-minuteMs) }
    expect(await outcome()).toBe('user')
  })

  test('of a code does not end for idleness', async () => {
    stored = { ...stored, method: 'code' }
    nowMs += 2 * idleMs
    expect(await outcome()).toBe('user')
  })

  test('ends at its expiry, also when it is cached', async () => {
    stored = { ...stored, expiresAt: at(minuteMs) }
    nowMs += minuteMs - 1
    expect(await outcome()).toBe('user')
    nowMs += 1
    expect(await outcome()).toBe('invalid_session')
    expect(lookUps).toBe(1)
  })

  test('of a disabled user is refused', async () => {
    stored = { ...stored, disabledAt: at(0) }
    expect(await outcome()).toBe('user_disabled')
  })

  test('is read again after it was invalidated for its user, and not for another', async () => {
    await outcome()
    sessions.invalidate({ userId: 'another' })
    await outcome()
    expect(lookUps).toBe(1)
    sessions.invalidate({ userId: 'user' })
    await outcome()
    expect(lookUps).toBe(2)
    sessions.invalidate()
    await outcome()
    expect(lookUps).toBe(3)
  })
})

describe('a session whose tokens expire', () => {
  beforeEach(() => {
    stored = { ...stored, renewAt: at(minuteMs) }
    sessions.renewWith(async (id) => {
      renewals.push(id)
      stored = { ...stored, renewAt: at(minuteMs) }
    })
  })

  test('is renewed once when they have expired, and not before', async () => {
    nowMs += minuteMs - 1
    expect(await outcome()).toBe('user')
    expect(renewals).toEqual([])
    nowMs += 1
    expect([await outcome(), await outcome()]).toEqual(['user', 'user'])
    expect(renewals).toEqual(['session'])
  })

  test('and that is over is not renewed', async () => {
    nowMs += idleMs
    expect(await outcome()).toBe('invalid_session')
    expect(renewals).toEqual([])
  })

  test('that was disabled meanwhile is refused after the renewal', async () => {
    sessions.renewWith(async () => {
      stored = { ...stored, renewAt: null, disabledAt: at(0) }
    })
    nowMs += minuteMs
    expect(await outcome()).toBe('user_disabled')
  })
})
