import { expect, test } from 'bun:test'
import { createCallQueue } from '#inference/fair-queue/call-queue.ts'
import { createRouter } from '#inference/routing/router.ts'
import { defaultHealthSettings } from '#inference/routing/settings.ts'
import { nothingTried } from '#inference/routing/usable.ts'
import type { Upstream } from '#inference/upstream.ts'
import { adaptersWithoutModels } from '#test/support/adapters.ts'
import { eventually } from '#test/support/eventually.ts'
import { start, target } from '#test/support/generations.ts'
import { makeCall } from '#test/support/queued-calls.ts'

/** Calls that began before a reload of the configuration. */

test('a call that waited while the key of its upstream changed is sent with the new key', async () => {
  const queue = createCallQueue({
    settings: {
      waitMaxMs: 60_000,
      backgroundWaitMaxMs: 60_000,
      waitingMax: 10,
      waitingPerPrincipalMax: 10,
    },
    nowMs: () => performance.now(),
    onEnded() {},
  })
  const router = createRouter({ queue, maxInFlightOf: () => 1 })
  const used: Upstream[] = []
  const embed = async (_input: unknown, { upstream }: { upstream: Upstream }) => {
    used.push(upstream)
    return { vectors: [new Float32Array([1])], dims: 1, inputTokens: 1 }
  }
  const { chat, ...others } = adaptersWithoutModels
  const { inference } = start({ router, adapters: { ...others, chat: { ...chat, embed } } })
  const gpu = target('http://gpu.test/v1', 'gpu')
  const call = { ...makeCall().call, targets: [gpu] }
  const running = router.take(call, nothingTried)
  const waiting = inference.embed(call, 'm', { texts: ['a'] })
  await eventually('the call waits', () => queue.waiting().length === 1)
  router.configure({
    upstreams: [{ ...gpu.upstream, key: 'new' }],
    settings: defaultHealthSettings,
    maxInFlightOf: () => 1,
    probes: { reach: async () => true, generate: async () => true },
  })
  running?.end(null)
  await waiting
  expect(used.map(({ key }) => key)).toEqual(['new'])
})

test('deadlines and limits change for calls that start later', async () => {
  const { inference } = start()
  const call = { ...makeCall().call, targets: [target('http://127.0.0.1:1/v1', 'gpu')] }
  inference.configure({
    limits: {
      eventBytesMax: 1,
      toolArgumentCharsMax: 1,
      streamsMax: 0,
      outputCharsMax: 1,
    },
    deadlines: { firstEventMs: 1, gapMs: 1, totalMs: 1 },
    retry: { retriesMax: 0, backoffMs: 0, retryAfterMaxMs: 0 },
  })
  const { request } = call
  if (request === undefined) throw new Error('a generation has a request')
  const failure = await inference
    .generate({ ...call, request })
    .next()
    .catch((error: unknown) => error)
  expect(failure).toMatchObject({ kind: 'too_many_streams' })
})
