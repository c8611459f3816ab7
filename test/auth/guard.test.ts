import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import type { Holder } from '#auth/current-principals.ts'
import { requirePermission, watchAuthorization } from '#auth/guard.ts'
import type { Permission } from '#auth/permissions.ts'
import { createWatchers } from '#auth/watchers.ts'
import { AppError } from '#lib/errors.ts'

/** Authorisation that is checked again while a connection is open. The clock advances by hand. */
beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

function watch(
  outcome: () => Promise<unknown>,
  holder: Holder | null = { userId: 'ann', keyId: 'k1' },
) {
  const authorizeAgain = jest.fn(outcome)
  const onRefused = jest.fn()
  const { watch: watchChanges, changed } = createWatchers()
  const stop = watchAuthorization(
    { watch: watchChanges },
    { holder: () => holder, authorizeAgain, periodMs: 1_000, onRefused },
  )
  const pass = async (ms: number) => {
    jest.advanceTimersByTime(ms)
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }
  return { authorizeAgain, onRefused, changed, stop, pass }
}

test('an open connection is authorised again once in each period, until it ends', async () => {
  const { authorizeAgain, onRefused, stop, pass } = watch(() => Promise.resolve())
  await pass(999)
  expect(authorizeAgain).toHaveBeenCalledTimes(0)
  await pass(1)
  await pass(1_000)
  expect(authorizeAgain).toHaveBeenCalledTimes(2)
  stop()
  await pass(5_000)
  expect(authorizeAgain).toHaveBeenCalledTimes(2)
  expect(onRefused).not.toHaveBeenCalled()
})

test.each([
  ['key', 'k1', 1],
  ['key', 'k2', 0],
  ['user', 'ann', 1],
  ['user', 'ben', 0],
  ['idp_groups', 'ann', 1],
  ['idp_groups', 'ben', 0],
  ['groups', '', 1],
  ['all', '', 1],
] as const)('a change of %s %j is checked at once: %d times', async (what, id, times) => {
  const { authorizeAgain, changed, stop } = watch(() => Promise.resolve())
  await changed({ what, id })
  expect(authorizeAgain).toHaveBeenCalledTimes(times)
  stop()
  await changed({ what, id })
  expect(authorizeAgain).toHaveBeenCalledTimes(times)
})

test('a connection whose principal is not known yet is checked after every change', async () => {
  const { authorizeAgain, changed } = watch(() => Promise.resolve(), null)
  await changed({ what: 'key', id: 'k2' })
  expect(authorizeAgain).toHaveBeenCalledTimes(1)
})

test('a refusal after a change is reported once and ends the checks', async () => {
  const refusal = new AppError('invalid_api_key', 'No longer.')
  const { authorizeAgain, onRefused, changed, pass } = watch(() => Promise.reject(refusal))
  await Promise.all([changed({ what: 'key', id: 'k1' }), changed({ what: 'all', id: '' })])
  await pass(5_000)
  expect(onRefused.mock.calls).toEqual([[refusal]])
  expect(authorizeAgain).toHaveBeenCalledTimes(2)
})

test('many connections are checked with a limit of concurrent checks', async () => {
  const { watch: add, changed } = createWatchers()
  let running = 0
  let most = 0
  let checks = 0
  for (let index = 0; index < 1_000; index++) {
    const check = async () => {
      checks += 1
      running += 1
      most = Math.max(most, running)
      await Promise.resolve()
      running -= 1
    }
    add({ holder: () => ({ userId: `u${index}`, keyId: null }), check })
  }
  await changed({ what: 'groups', id: '' })
  expect([checks, most]).toEqual([1_000, 16])
})

test.each(['invalid_token', 'permission_denied'] as const)(
  'the refusal %s is reported once and ends the checks',
  async (kind) => {
    const refusal = new AppError(kind, 'No longer.')
    const { authorizeAgain, onRefused, pass } = watch(() => Promise.reject(refusal))
    await pass(1_000)
    await pass(5_000)
    expect(onRefused.mock.calls).toEqual([[refusal]])
    expect(authorizeAgain).toHaveBeenCalledTimes(1)
  },
)

test.each<[string, Error]>([
  ['an unreachable database', new AppError('service_unavailable', 'Later.')],
  ['an error of the gateway', new Error('a fault')],
])('%s says nothing about a credential: it is checked again', async (_, error) => {
  const { authorizeAgain, onRefused, pass } = watch(() => Promise.reject(error))
  await pass(1_000)
  await pass(1_000)
  expect(authorizeAgain).toHaveBeenCalledTimes(2)
  expect(onRefused).not.toHaveBeenCalled()
})

test('every permission includes the base permission, which is missed first', () => {
  const requireEdit = (...held: Permission[]) =>
    requirePermission({ permissions: new Set(held) }, 'can_edit_config')
  expect(() => requireEdit('can_edit_config')).toThrow('Missing permission: can_access_api.')
  expect(() => requireEdit()).toThrow('Missing permission: can_access_api.')
  expect(() => requireEdit('can_access_api')).toThrow('Missing permission: can_edit_config.')
  requireEdit('can_access_api', 'can_edit_config')
})
