import { afterEach, expect, test } from 'bun:test'
import { createKeySet, type KeySet, type KeySetOptions } from '#auth/jwks.ts'
import {
  createSigningKey,
  type IdentityProvider,
  startIdentityProvider,
} from '#test/support/identity-provider.ts'
import { quietLog } from '#test/support/quiet-log.ts'

const [first, second] = [createSigningKey('first'), createSigningKey('second')]
const firstHeader = { alg: 'RS256', kid: 'first' }
const secondHeader = { alg: 'RS256', kid: 'second' }

let provider: IdentityProvider
let keySet: KeySet

afterEach(async () => {
  keySet.close()
  await provider.stop()
})

function start(options: Partial<KeySetOptions> = {}) {
  provider = startIdentityProvider([first])
  keySet = createKeySet({
    url: provider.jwksUrl,
    fetch,
    log: quietLog,
    ageMaxMs: 60_000,
    ...options,
  })
}

test('a key that is no longer published is refused after the next refresh', async () => {
  start({ refreshMs: 10 })
  await keySet.keyFor(firstHeader)
  const before = keySet.version()
  provider.publish([second])
  while (keySet.version() === before) await Bun.sleep(5)
  await expect(keySet.keyFor(firstHeader)).rejects.toThrow('does not publish')
  await keySet.keyFor(secondHeader)
})

test('an unchanged key set is no change', async () => {
  start({ refreshMs: 10 })
  await keySet.keyFor(firstHeader)
  while (provider.requestCount() < 4) await Bun.sleep(5)
  expect(keySet.version()).toBe(1)
})

test('an unknown key id is fetched again after the cool-down', async () => {
  start({ cooldownMs: 0 })
  await expect(keySet.keyFor(secondHeader)).rejects.toThrow('does not publish')
  provider.publish([first, second])
  await keySet.keyFor(secondHeader)
})

test('an expired key set is refused until a fresh one arrives', async () => {
  start({ ageMaxMs: 0 })
  await keySet.keyFor(firstHeader).catch(() => {})
  await provider.goDown()
  await expect(keySet.keyFor(firstHeader)).rejects.toThrow('is unreachable')
})

test('concurrent requests for the first key set share one fetch', async () => {
  start()
  await Promise.all(Array.from({ length: 50 }, () => keySet.keyFor(firstHeader)))
  expect(provider.requestCount()).toBe(1)
})
