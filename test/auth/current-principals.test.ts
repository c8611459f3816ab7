import { beforeEach, describe, expect, test } from 'bun:test'
import { createCurrentPrincipals } from '#auth/current-principals.ts'
import type { Rights } from '#auth/groups.ts'
import type { StoredKey } from '#auth/key-store.ts'
import { AppError } from '#lib/errors.ts'

const now = new Date(Date.UTC(2026, 10, 23))
const membership = { idpGroups: ['staff'], manual: [] }
const rights: Rights = { groups: ['staff'], permissions: new Set(['can_access_api']) }
const user = { userId: 'user', subject: 'ann', name: 'Ann', membership }
const key: StoredKey = {
  ...user,
  keyId: 'key',
  disabledAt: null,
  expiresAt: null,
  revokedAt: null,
  replacedUntil: null,
  models: ['m'],
  scopes: null,
  limits: null,
  allowedIps: null,
}

let storedKey: StoredKey | undefined
let storedUser: (typeof user & { disabledAt: Date | null }) | undefined
beforeEach(() => {
  storedKey = key
  storedUser = { ...user, disabledAt: null }
})

const find = createCurrentPrincipals({
  store: {
    findKeyById: async (id) => (id === 'key' ? storedKey : undefined),
    findUser: async (id) => (id === 'user' ? storedUser : undefined),
  },
  groups: { of: () => rights },
  now: () => now,
})

async function outcomeOf(keyId: string | null, userId = 'user') {
  try {
    return await find({ userId, keyId })
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return `${error.status} ${error.wireCode}`
  }
}

describe('later work of an API key', () => {
  test('has its rights and restrictions', async () => {
    expect(await outcomeOf('key')).toMatchObject({
      ...{ userId: 'user', subject: 'ann', groups: ['staff'] },
      credential: { kind: 'api-key', keyId: 'key', models: ['m'] },
    })
  })

  test.each<[string, Partial<StoredKey> | undefined, string]>([
    ['deleted', undefined, '401 invalid_api_key'],
    ['revoked', { revokedAt: now }, '401 invalid_api_key'],
    ['expired', { expiresAt: now }, '401 invalid_api_key'],
    ['disabled with its user', { disabledAt: now }, '401 user_disabled'],
  ])('that was %s is refused', async (_, change, outcome) => {
    storedKey = change && { ...key, ...change }
    expect(await outcomeOf('key')).toBe(outcome)
  })
})

describe('later work of a token', () => {
  test('has the present rights of its user', async () => {
    expect(await outcomeOf(null)).toEqual({
      ...{ userId: 'user', subject: 'ann', name: 'Ann', credential: { kind: 'jwt' } },
      ...rights,
    })
  })

  test('of a disabled user is refused', async () => {
    storedUser = { ...user, disabledAt: now }
    expect(await outcomeOf(null)).toBe('401 user_disabled')
  })

  test('of a user who is not recorded has no principal', async () => {
    expect(await outcomeOf(null, 'nobody')).toBeUndefined()
  })
})
