import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createApiKey, hashApiKey, maskApiKey } from '#auth/key-format.ts'
import { userIdOf } from '#auth/principal.ts'
import { type AuthStore, createAuthStore } from '#auth/store.ts'
import { openRecordedDatabase, type RecordedDatabase } from '#test/support/recorded-statements.ts'

/** What the database remembers of users and keys. */
let database: RecordedDatabase
let store: AuthStore

beforeAll(async () => {
  database = await openRecordedDatabase()
  store = createAuthStore(database)
})
afterAll(() => database.close())

const noon = new Date('2030-01-01T12:00:00Z')
const later = (ms: number) => new Date(noon.getTime() + ms)

const record = (subject: string, groups: string[], issuedAtS: number, seenAt = noon) =>
  store.recordUser({ userId: userIdOf(subject), subject, name: null, groups, issuedAtS, seenAt })

function add(subject: string, given: { kind?: 'user' | 'service'; expiresAt?: Date } = {}) {
  const key = createApiKey()
  const id = Bun.randomUUIDv7()
  const userId = userIdOf(subject)
  const { kind = 'user', expiresAt = null } = given
  const owner = { userId, subject, kind }
  const names = { id, userId, owner, name: 'k', masked: maskApiKey(key) }
  const row = { ...names, hash: hashApiKey(key, undefined), expiresAt, createdAt: noon }
  return store.addKey(row, 2, async () => {})
}

describe('a user of a token', () => {
  const lastSeenOf = async (subject: string) => {
    const [row] = await database.drizzle.execute<{ at: string }>(
      `select to_json(last_seen_at at time zone 'utc') as at from app_user where subject = '${subject}'`,
    )
    return row?.at.slice(0, 19)
  }

  test('has other groups only if a newer token, or one of the same second, lists others', async () => {
    const changed = async (groups: string[], issuedAtS: number) =>
      (await record('ann', groups, issuedAtS)).isChanged
    expect(await changed(['a', 'b'], 100)).toBe(false)
    expect(await changed(['a', 'b'], 100)).toBe(false)
    expect(await changed(['a', 'b'], 101)).toBe(false)
    expect(await changed(['a', 'c'], 101)).toBe(true)
    expect(await changed(['a'], 99)).toBe(false)
    expect(await changed(['a'], 102)).toBe(true)
    expect(await changed(['b'], 103)).toBe(true)
    expect(await changed([], 104)).toBe(true)
  })

  test('keeps the name of an earlier token', async () => {
    const user = { userId: userIdOf('bob'), subject: 'bob', groups: [], seenAt: noon }
    expect((await record('bob', [], 100)).name).toBeNull()
    const named = await store.recordUser({ ...user, name: 'Bob', issuedAtS: 101 })
    expect(named.name).toBe('Bob')
    expect((await record('bob', [], 102)).name).toBe('Bob')
  })

  test('was last seen at its newest token, or at most an hour before it came again', async () => {
    await record('cleo', [], 100)
    expect(await lastSeenOf('cleo')).toBe('2030-01-01T12:00:00')
    await record('cleo', [], 100, later(3_600_000))
    expect(await lastSeenOf('cleo')).toBe('2030-01-01T12:00:00')
    await record('cleo', [], 100, later(3_601_000))
    expect(await lastSeenOf('cleo')).toBe('2030-01-01T13:00:01')
    await record('cleo', [], 101, later(3_700_000))
    expect(await lastSeenOf('cleo')).toBe('2030-01-01T13:01:40')
  })

  test('is only read, not written, when it comes again within an hour', async () => {
    await record('dora', ['a'], 100)
    const { statements } = await database.statementsOf(() => record('dora', ['a'], 100))
    expect(statements.map((text) => text.split(' ')[0])).toEqual(['select'])
  })
})

describe('a key', () => {
  test('counts towards the limit of its owner until it has expired', async () => {
    expect(await add('dan', { expiresAt: later(0) })).toBe('added')
    expect(await add('dan', { expiresAt: later(1_000) })).toBe('added')
    expect(await add('dan')).toBe('added')
    expect(await add('dan')).toBe('too-many')
    expect(await add('eve')).toBe('added')
  })

  test('needs a service account that exists', async () => {
    expect(await add('nobody', { kind: 'service' })).toBe('no-owner')
    // A user is recorded with the first key, and is no service account.
    expect(await add('finn')).toBe('added')
    expect(await add('finn', { kind: 'service' })).toBe('no-owner')
  })
})

test('concurrent first requests and keys of a user fail none, and record one user', async () => {
  for (let round = 0; round < 100; round++) {
    const subject = `new-${round}`
    const requests = Array.from({ length: 3 }, () => record(subject, ['a'], 100))
    const keys = Array.from({ length: 3 }, () => add(subject))
    await Promise.all(requests)
    const added = await Promise.all(keys)
    expect(added.toSorted()).toEqual(['added', 'added', 'too-many'])
  }
})
