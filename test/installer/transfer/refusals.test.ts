import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { InstallerSettings } from '#installer/config.ts'
import type { Fault } from '#test/support/origin-answers.ts'
import { type Bench, contentOf, openBench, remoteFile } from './transfer-fixture.ts'

/** Statuses of a source: which are final, and which are retried. */

const content = contentOf(500_000)
let bench: Bench
let url: string

beforeEach(async () => {
  bench = await openBench()
  url = bench.origin.put('/model.gguf', content)
})
afterEach(() => bench.close())

const misbehave = (...faults: Fault[]) => bench.origin.misbehave('/model.gguf', ...faults)
const always = (fault: Fault) => bench.origin.alwaysMisbehave('/model.gguf', fault)
const transferOne = (settings: Partial<InstallerSettings> = {}) =>
  bench.transfer(remoteFile(url, content), { settings: { rangesMax: 1, ...settings } })

for (const [status, code] of [
  [401, 'source_auth_required'],
  [403, 'source_auth_required'],
  [404, 'not_found'],
  [410, 'not_found'],
  [400, 'upstream_refused'],
  [409, 'upstream_refused'],
  [451, 'upstream_refused'],
] as const) {
  test(`status ${status} is final`, async () => {
    always({ kind: 'status', status })
    expect((await transferOne()).failure).toBe(code)
    expect(bench.origin.questions).toHaveLength(1)
  })
}

test.each([408, 425, 429])('status %d is retried', async (status) => {
  misbehave({ kind: 'status', status })
  expect((await transferOne()).failure).toBe('')
  expect(bench.origin.questions.length).toBeGreaterThan(1)
})

test('server errors are retried up to the limit', async () => {
  misbehave({ kind: 'status', status: 500 }, { kind: 'status', status: 502 })
  expect((await transferOne()).failure).toBe('')
  const before = bench.origin.questions.length
  always({ kind: 'status', status: 500 })
  expect((await transferOne({ attemptsMax: 3 })).failure).toBe('upstream_error')
  expect(bench.origin.questions).toHaveLength(before + 3)
})

test('a refusal of a redirect target is retried once, as its URL may have expired', async () => {
  const redirect = { kind: 'status', status: 302, headers: { location: '/signed' } } as const
  always(redirect)
  bench.origin.put('/signed', content)
  bench.origin.misbehave('/signed', { kind: 'status', status: 403 })
  expect((await transferOne()).failure).toBe('')
  bench.origin.alwaysMisbehave('/signed', { kind: 'status', status: 404 })
  const before = bench.origin.questions.length
  expect((await transferOne({ attemptsMax: 10 })).failure).toBe('not_found')
  expect(bench.origin.questions.length - before).toBeLessThanOrEqual(6)
})
