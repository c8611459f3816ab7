import { afterEach, expect, test } from 'bun:test'
import { createRouter } from '#inference/routing/router.ts'
import {
  collect,
  start,
  stopUpstreams,
  target,
  texts,
  upstreamThat,
  whole,
} from '#test/support/generations.ts'
import type { ReplayUpstream } from '#test/support/replay-upstream.ts'
import { seededRandom } from '#test/support/seeded-random.ts'

/** How real upstreams of one tier share requests. Their speeds are relative: nothing is timed. */

afterEach(stopUpstreams)

const callers = 8

async function askAll(upstreams: readonly ReplayUpstream[], requestsEach: number) {
  const targets = upstreams.map(({ baseUrl }, index) => ({
    ...target(baseUrl, `upstream-${index}`),
    tier: 0,
  }))
  const { run } = start({ router: createRouter({ random: seededRandom(7) }) })
  const caller = async () => {
    for (let round = 0; round < requestsEach; round++) {
      expect(texts(await collect(run(targets)))).toBe('one two')
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return upstreams.map(({ requests }) => requests.length)
}

test('two equal upstreams share within 5 %', async () => {
  const upstreams = await Promise.all([
    upstreamThat({ body: whole }),
    upstreamThat({ body: whole }),
  ])
  const [first = 0, second = 0] = await askAll(upstreams, 50)
  expect(first + second).toBe(400)
  expect(Math.abs(first - second) / 400).toBeLessThanOrEqual(0.05)
})

test('one that is four times slower gets at most a quarter', async () => {
  const fastMs = 10
  const fast = await upstreamThat({ body: whole, cutsAt: [1], pauseMs: fastMs })
  // A response takes as long as four of the other upstream that begin when it begins.
  let answered = 0
  fast.answer(() => {
    answered++
    return { body: whole, cutsAt: [1], pauseMs: fastMs }
  })
  const slow = await upstreamThat({
    body: whole,
    cutsAt: [1],
    async nextPiece() {
      const until = answered + 4 * (callers - 2)
      for (let turn = 0; turn < 4 || (answered < until && turn < 40); turn++) {
        await Bun.sleep(fastMs)
      }
    },
  })
  const [slowCount = 0, fastCount = 0] = await askAll([slow, fast], 40)
  expect(slowCount + fastCount).toBe(320)
  expect(slowCount).toBeLessThanOrEqual(80)
  expect(slowCount).toBeGreaterThan(0)
})
