import { afterEach, describe, expect, test } from 'bun:test'
import { createProbes } from '#inference/routing/probes.ts'
import { createRouter } from '#inference/routing/router.ts'
import type { HealthSettings } from '#inference/routing/settings.ts'
import { defaultHealthSettings } from '#inference/routing/settings.ts'
import type { Target } from '#inference/upstream.ts'
import { createBackgroundContext } from '#lib/request-context.ts'
import { adaptersWithoutModels } from '#test/support/adapters.ts'
import { makeRequest, makeRequestContext } from '#test/support/generation.ts'
import {
  collect,
  json,
  start,
  stopUpstreams,
  target,
  texts,
  upstreamThat,
  whole,
} from '#test/support/generations.ts'
import { openTransport } from '#test/support/transport.ts'
import { listenWithoutAccepting } from '../transport/unaccepting-listener.ts'

/** Outages over real sockets: what reaches an upstream that fails, and what callers notice. */

const stops: (() => void)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) stop()
  await stopUpstreams()
})

/** Longer than any test, however slow the machine is. */
const longMs = 600_000

/** Callers of a gateway with these targets; checks run often, so that tests are short. */
function serve(targets: Target[], given: { settings?: Partial<HealthSettings> } = {}) {
  const settings = {
    ...defaultHealthSettings,
    ejectionMs: longMs,
    ejectionMaxMs: longMs,
    silenceMs: 50,
    probeMs: 100,
    ...given.settings,
  }
  const stopped = new AbortController()
  let passedMs = 0
  const router = createRouter({
    settings,
    nowMs: () => performance.now() + passedMs,
    random: () => 0.5,
    probes: createProbes({
      adapters: adaptersWithoutModels,
      transport: openTransport(),
      limits: { eventBytesMax: 65_536, toolArgumentCharsMax: 65_536 },
      probeMs: settings.probeMs,
      requestContext: () => createBackgroundContext(stopped.signal),
    }),
  })
  const timer = setInterval(router.check, 10)
  stops.push(() => {
    clearInterval(timer)
    stopped.abort()
  })
  const { run, records } = start({ router })
  return {
    router,
    records,
    /** Advances the clock of the router. */
    pass(ms: number) {
      passedMs += ms
    },
    ask: async () => texts(await collect(run(targets))),
    /** The requests that tried more than one target. */
    noticed: () => records.filter(({ retries }) => retries > 0).length,
  }
}

const deadPort = 'http://127.0.0.1:1/v1'
const jobOf = (targets: Target[], streamed: boolean) => ({
  request: makeRequest({ model: 'asked-name' }),
  targets,
  streamed,
  context: makeRequestContext(),
})
const posts = ({ requests }: { requests: readonly { method: string }[] }) =>
  requests.filter(({ method }) => method === 'POST').length

describe('after an upstream dies', () => {
  test('at most three requests notice, one after the other', async () => {
    const other = await upstreamThat({ body: whole })
    const { ask, noticed } = serve([target(deadPort, 'a'), target(other.baseUrl, 'b')])
    for (let request = 0; request < 40; request++) expect(await ask()).toBe('one two')
    expect(noticed()).toBe(3)
  })

  test('at most three notice that it answers with errors, also of equal upstreams', async () => {
    const broken = await upstreamThat({ status: 500 })
    const other = await upstreamThat({ body: whole })
    const equal = [target(broken.baseUrl, 'a'), target(other.baseUrl, 'b')].map((each) => ({
      ...each,
      tier: 0,
    }))
    const { ask, noticed } = serve(equal)
    for (let request = 0; request < 40; request++) expect(await ask()).toBe('one two')
    expect([posts(broken), noticed()]).toEqual([3, 3])
  })

  test('no caller of a crowd gets an error', async () => {
    const other = await upstreamThat({ body: whole })
    const { ask } = serve([target(deadPort, 'a'), target(other.baseUrl, 'b')])
    const answers = await Promise.all(Array.from({ length: 100 }, ask))
    expect(new Set(answers)).toEqual(new Set(['one two']))
  })

  test('it returns after a check and one request on trial', async () => {
    const first = await upstreamThat({ status: 500 })
    const other = await upstreamThat({ body: whole })
    const settings = { recoveryMs: 0, silenceMs: longMs }
    const { ask, pass } = serve([target(first.baseUrl, 'a'), target(other.baseUrl, 'b')], {
      settings,
    })
    for (let request = 0; request < 6; request++) await ask()
    expect(posts(first)).toBe(3)
    first.answer({ body: whole })
    pass(longMs)
    while (posts(first) === 3) await ask()
    for (let request = 0; request < 4; request++) await ask()
    expect(posts(first)).toBe(8)
  })
})

describe('a black hole', () => {
  test.each([true, false])(
    'that accepts and never answers costs one caller once (streamed: %p)',
    async (isStreamed) => {
      const silent = await upstreamThat({ ending: 'silent' })
      const other = await upstreamThat({ body: whole })
      const targets = [target(silent.baseUrl, 'a'), target(other.baseUrl, 'b')]
      const { inference } = start({ router: serve(targets).router })
      const job = () => jobOf(targets, isStreamed)
      for (let request = 0; request < 20; request++) {
        expect(texts(await collect(inference.generate(job())))).toBe('one two')
      }
      expect(posts(silent)).toBe(1)
    },
  )

  test('of a crowd of callers moves all at once, and takes no more', async () => {
    const silent = await upstreamThat({ ending: 'silent' })
    const other = await upstreamThat({ body: whole })
    const { ask, noticed } = serve([target(silent.baseUrl, 'a'), target(other.baseUrl, 'b')])
    const crowd = Promise.all(Array.from({ length: 50 }, ask))
    expect(new Set(await crowd)).toEqual(new Set(['one two']))
    const met = posts(silent)
    for (let request = 0; request < 20; request++) await ask()
    expect([posts(silent), noticed()]).toEqual([met, 50])
  })

  test.skipIf(process.platform !== 'linux')(
    'that swallows connections costs one caller once',
    async () => {
      const hole = await listenWithoutAccepting()
      stops.push(hole.close)
      const other = await upstreamThat({ body: whole })
      const { ask, noticed } = serve([
        target(`http://127.0.0.1:${hole.port}/v1`, 'a'),
        target(other.baseUrl, 'b'),
      ])
      for (let request = 0; request < 20; request++) expect(await ask()).toBe('one two')
      expect(noticed()).toBe(1)
    },
  )

  test('is not what a slow upstream is that still responds', async () => {
    let finish = () => {}
    const held = new Promise<void>((resolve) => {
      finish = resolve
    })
    // One byte at once, so that the head is complete; the rest when the test says so.
    const slow = await upstreamThat({ body: whole, cutsAt: [1], nextPiece: () => held })
    const other = await upstreamThat({ body: whole })
    slow.answer(({ path }) =>
      path.endsWith('/models')
        ? { headers: json, body: '{"data":[]}' }
        : { body: whole, cutsAt: [1], nextPiece: () => held },
    )
    const { ask, noticed } = serve([target(slow.baseUrl, 'a'), target(other.baseUrl, 'b')], {
      settings: { probeMs: longMs },
    })
    const answer = ask()
    await slow.until(({ requests }) => requests.some(({ path }) => path.endsWith('/models')))
    await Bun.sleep(50)
    finish()
    expect(await answer).toBe('one two')
    expect([noticed(), posts(other)]).toEqual([0, 0])
  })
})
