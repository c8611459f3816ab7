import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { requirePermission, watchAuthorization } from '#auth/guard.ts'
import type { Permission } from '#auth/permissions.ts'
import { AppError } from '#lib/errors.ts'

/** Authorisation that is checked again while a connection is open. The clock advances by hand. */
beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

function watch(outcome: () => Promise<unknown>) {
  const authorizeAgain = jest.fn(outcome)
  const onRefused = jest.fn()
  const stop = watchAuthorization(authorizeAgain, 1_000, onRefused)
  const pass = async (ms: number) => {
    jest.advanceTimersByTime(ms)
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }
  return { authorizeAgain, onRefused, stop, pass }
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
