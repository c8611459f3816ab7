import { beforeAll, expect, test } from 'bun:test'
import { createShares } from '#files/shares/shares.ts'
import { principalOf } from '#test/support/file-gateway.ts'
import { ann, bob, cy, fresh, useFileGateway } from './fixture.ts'

/** Rights that end between the first check of a request and its transaction. */
const fixture = useFileGateway()

beforeAll(async () => {
  for (const who of [ann, bob, cy]) await fixture.gateway.send(who, '/v1/files')
})

/** Bob manages a file of Ann; `shares` is used by him, and the change happens before its transaction. */
async function startRace(change: (file: string, share: string) => Promise<unknown>) {
  const { gateway, database } = fixture
  const id = await gateway.upload(ann, fresh('file'))
  const file = `/v1/files/${id}`
  const share = await gateway.share(ann, file, { type: 'user', subject: 'bob' }, 'manager')
  let isChanged = false
  const racing = new Proxy(database.drizzle, {
    get(target, name, receiver) {
      const value = Reflect.get(target, name, receiver)
      if (name !== 'transaction') return value
      return async (...given: Parameters<typeof target.transaction>) => {
        if (!isChanged) await change(file, share)
        isChanged = true
        return target.transaction(...given)
      }
    },
  })
  const shares = createShares({ database: { ...database, drizzle: racing }, now: () => new Date() })
  const granting = shares.add(
    principalOf(bob),
    { type: 'file', id },
    {
      grantee: { type: 'user', id: principalOf(cy).userId },
      mustBeKnown: true,
      role: 'viewer',
    },
  )
  const outcome = await granting.then(
    () => 'granted',
    (error: unknown) => Object(error).kind,
  )
  const seen = await gateway.send(cy, file)
  return { outcome, status: seen.status }
}

test('a manager may share', async () => {
  const { outcome, status } = await startRace(async () => {})
  expect([outcome, status]).toEqual(['granted', 200])
})

test('a manager who became a viewer meanwhile may not', async () => {
  const { outcome, status } = await startRace((file, share) =>
    fixture.gateway.send(ann, `${file}/shares/${share}`, {
      method: 'PATCH',
      json: { role: 'viewer' },
    }),
  )
  expect([outcome, status]).toEqual(['permission_denied', 404])
})

test('a manager whose share was removed meanwhile finds nothing', async () => {
  const { outcome, status } = await startRace((file, share) =>
    fixture.gateway.send(ann, `${file}/shares/${share}`, { method: 'DELETE' }),
  )
  expect([outcome, status]).toEqual(['not_found', 404])
})
