import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { credentialsCachedMax } from '#auth/credentials.ts'
import { createGroupRights, type GroupRights } from '#auth/groups.ts'
import { createApiKey, hashApiKey, maskApiKey } from '#auth/key-format.ts'
import { createKeyPrincipals, type KeyPrincipals } from '#auth/key-principals.ts'
import { userIdOf } from '#auth/principal.ts'
import { createAuthStore } from '#auth/store.ts'
import { appUser } from '#db/schema/auth.ts'
import { AppError } from '#lib/errors.ts'
import { eventually } from '#test/support/eventually.ts'
import { endPassedTime, passTime } from '#test/support/passing-time.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { openRecordedDatabase, type RecordedDatabase } from '#test/support/recorded-statements.ts'

const now = () => new Date()
let database: RecordedDatabase
let groups: GroupRights
let keys: KeyPrincipals
let lookUps = 0
let answers = 0
let marks: string[] = []
/** The promise that a lookup awaits after the database has responded. */
let hold = Promise.resolve()
let outage: AppError | undefined
let unknownKeys: KeyPrincipals
let unknownLookUps = 0

beforeAll(async () => {
  database = await openRecordedDatabase()
  const store = createAuthStore(database)
  groups = await createGroupRights({ load: store.loadGroups, log: quietLog })
  unknownKeys = createKeyPrincipals({
    store: {
      async findKey() {
        unknownLookUps += 1
        return undefined
      },
      async markUsed() {},
    },
    groups,
    pepper: undefined,
    cacheMs: 60_000,
    now,
    log: quietLog,
  })
})

afterEach(endPassedTime)
afterAll(() => database.close())

beforeEach(() => {
  const store = createAuthStore(database)
  lookUps = 0
  answers = 0
  marks = []
  hold = Promise.resolve()
  outage = undefined
  keys = createKeyPrincipals({
    store: {
      async findKey(hash) {
        lookUps += 1
        if (outage !== undefined) throw outage
        const key = await store.findKey(hash)
        answers += 1
        await hold
        return key
      },
      async markUsed(keyIds, usedAt) {
        marks.push(...keyIds)
        await store.markUsed(keyIds, usedAt)
      },
    },
    groups,
    pepper: undefined,
    cacheMs: 60_000,
    now,
    log: quietLog,
  })
})

async function addKey(
  subject = 'ann',
  expiresAt: Date | null = null,
): Promise<{ id: string; key: string }> {
  const key = createApiKey()
  const id = Bun.randomUUIDv7()
  const userId = userIdOf(subject)
  await createAuthStore(database).addKey(
    {
      id,
      userId,
      owner: { userId, subject, kind: 'user' },
      name: 'k',
      hash: hashApiKey(key, undefined),
      masked: maskApiKey(key),
      expiresAt,
      createdAt: now(),
    },
    1_000,
    async () => {},
  )
  return { id, key }
}

test('concurrent requests with one key share one lookup and one usage record', async () => {
  const { id, key } = await addKey()
  await Promise.all(Array.from({ length: 100 }, () => keys.authenticate(key)))
  await keys.authenticate(key)
  expect(lookUps).toBe(1)
  await keys.close()
  expect(marks).toEqual([id])
  // Within a minute, its use is not recorded again.
  await keys.authenticate(key)
  await keys.close()
  expect(marks).toEqual([id])
})

test('an unknown key is looked up once', async () => {
  const key = createApiKey()
  for (let round = 0; round < 5; round++) {
    await expect(keys.authenticate(key)).rejects.toThrow('not valid')
  }
  expect(lookUps).toBe(1)
})

test('unknown keys are remembered in a bounded number', async () => {
  const [first = '', ...others] = Array.from({ length: credentialsCachedMax + 1 }, createApiKey)
  await expect(unknownKeys.authenticate(first)).rejects.toThrow('not valid')
  for (const key of others) await unknownKeys.authenticate(key).catch(() => {})
  expect(unknownLookUps).toBe(credentialsCachedMax + 1)
  await unknownKeys.authenticate(others.at(-1) ?? '').catch(() => {})
  expect(unknownLookUps).toBe(credentialsCachedMax + 1)
  await unknownKeys.authenticate(first).catch(() => {})
  expect(unknownLookUps).toBe(credentialsCachedMax + 2)
})

test('an unknown key is looked up again after five seconds', async () => {
  const key = createApiKey()
  const before = unknownLookUps
  for (const passedMs of [0, 4_000, 2_000, 0]) {
    passTime(passedMs)
    await unknownKeys.authenticate(key).catch(() => {})
  }
  expect(unknownLookUps).toBe(before + 2)
})

test('a key is trusted for five minutes while the database is unreachable', async () => {
  const { key } = await addKey()
  await keys.authenticate(key)
  outage = new AppError('service_unavailable', 'The database is unreachable.')
  passTime(299_000)
  await keys.authenticate(key)
  passTime(2_000)
  await expect(keys.authenticate(key)).rejects.toBe(outage)
})

test('a malformed key is never looked up', async () => {
  const key = createApiKey()
  await expect(keys.authenticate(`${key.slice(0, -1)}!`)).rejects.toThrow('not valid')
  expect(lookUps).toBe(0)
})

test('every refused key costs one lookup with the same statement, and none when it is repeated', async () => {
  const store = createAuthStore(database)
  const revoked = await addKey()
  await store.revokeKey({ userId: userIdOf('ann'), keyId: revoked.id }, now(), async () => {})
  const rotated = await addKey()
  const newSecret = createApiKey()
  const secret = { hash: hashApiKey(newSecret, undefined), masked: maskApiKey(newSecret) }
  await store.rotateKey(
    { userId: userIdOf('ann'), keyId: rotated.id },
    { ...secret, rotatedAt: now(), previousExpiresAt: now() },
    async () => {},
  )
  const expired = await addKey('ann', new Date(now().getTime() - 1_000))
  const disabled = await addKey('dan')
  await database.drizzle
    .update(appUser)
    .set({ disabledAt: now() })
    .where(eq(appUser.subject, 'dan'))
  const refused = {
    unknown: createApiKey(),
    revoked: revoked.key,
    'replaced by its rotation': rotated.key,
    expired: expired.key,
    'of a disabled user': disabled.key,
  }
  const statementsOf = async (key: string) => {
    const { statements } = await database.statementsOf(async () => {
      await expect(keys.authenticate(key)).rejects.toMatchObject({ kind: 'invalid_api_key' })
      await keys.close()
    })
    return statements
  }
  const [lookUp] = await statementsOf(createApiKey())
  expect(lookUp).toContain('"api_key"')
  for (const [kind, key] of Object.entries(refused)) {
    expect([kind, await statementsOf(key)]).toEqual([kind, [lookUp ?? '']])
    expect([kind, await statementsOf(key)]).toEqual([kind, []])
  }
})

test('a key is evicted by its id, by its owner, or with all others', async () => {
  const { id, key } = await addKey()
  const forgettings = [
    () => keys.invalidate({ keyId: id }),
    () => keys.invalidate({ userId: userIdOf('ann') }),
    () => keys.invalidate(),
  ]
  await keys.authenticate(key)
  for (const [index, forget] of forgettings.entries()) {
    forget()
    await keys.authenticate(key)
    await keys.authenticate(key)
    expect(lookUps).toBe(index + 2)
  }
  keys.invalidate({ keyId: Bun.randomUUIDv7() })
  keys.invalidate({ userId: userIdOf('bob') })
  await keys.authenticate(key)
  expect(lookUps).toBe(4)
})

test('a lookup that started before a revocation is not cached', async () => {
  const { id, key } = await addKey()
  const { promise, resolve } = Promise.withResolvers<void>()
  hold = promise
  const early = keys.authenticate(key)
  await eventually('the database has answered', () => answers === 1)
  const selector = { userId: userIdOf('ann'), keyId: id }
  await createAuthStore(database).revokeKey(selector, now(), async () => {})
  keys.invalidate({ keyId: id })
  resolve()
  await early
  await expect(keys.authenticate(key)).rejects.toThrow('revoked')
})
