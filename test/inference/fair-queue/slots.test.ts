import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { OpenCall } from '#inference/open-call.ts'
import { sleep } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { createDice } from '#test/support/dice.ts'
import { runPendingPromises } from '#test/support/pending-promises.ts'
import { makeCall, startQueue, unusedDeps } from '#test/support/queued-calls.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const slotsPerUpstream = 2
const callsPerSchedule = 40
const clientGone = () => new AppError('client_closed', 'The client disconnected.')

type Observed = {
  faults: string[]
  /** Calls that were aborted between their grant and the moment they could notice it. */
  abortedAtGrant: number
  waited: number
  retried: number
  settled: number
}

/** Calls of random length that fail, retry and are abandoned, and the slots that they use. */
async function runSchedule(seed: number, total: Observed): Promise<void> {
  const dice = createDice(seed)
  const { queue, router, upstream, ended } = startQueue({
    slots: slotsPerUpstream,
    settings: { waitMaxMs: 1_500, waitingMax: 20, waitingPerPrincipalMax: 10 },
  })
  const deps = { ...unusedDeps, router }
  const open = new Map<OpenCall, AbortController>()
  /** Calls that have not had a slot yet, as far as they have noticed. */
  const fresh = new Set<OpenCall>()
  const check = () => {
    for (const { inFlight, queued, upstream: of } of router.upstreams()) {
      if (inFlight > slotsPerUpstream) total.faults.push(`${inFlight} in flight at ${of.name}`)
      if (inFlight < 0 || queued < 0) total.faults.push('a count below zero')
    }
  }
  const abortSome = (chance: number) => {
    for (const [call, client] of open) {
      if (dice.upTo(100) >= chance) continue
      const endedBefore = ended.length
      if (dice.upTo(2) === 0) client.abort(clientGone())
      else call.abort(new AppError('upstream_total_timeout', 'It took too long.'))
      if (fresh.has(call) && ended.length === endedBefore) total.abortedAtGrant++
    }
  }
  const runCall = async (): Promise<void> => {
    const { call: modelCall, client } = makeCall({
      upstreams: [['gpu'], ['gpu', 'other'], ['other']][dice.upTo(3)] ?? [],
      userId: `user-${dice.upTo(4)}`,
      ...(dice.upTo(4) === 0 ? { priority: 'background' as const } : {}),
    })
    const call = new OpenCall('generate', 'a-model', modelCall)
    open.set(call, client)
    fresh.add(call)
    try {
      const options = { retry: deps.retry, limitMs: 5_000, streamed: true }
      const signal = await call.attempt(deps, options, async (_adapter, context) => {
        check()
        fresh.delete(call)
        context.signal.throwIfAborted()
        await sleep(dice.upTo(200), context.signal)
        const outcome = dice.upTo(6)
        if (outcome === 0) throw new AppError('upstream_error', 'It failed.')
        if (outcome === 1) throw new AppError('invalid_request', 'It is wrong.')
        return context.signal
      })
      await sleep(dice.upTo(300), signal)
      call.complete(null)
    } catch (error) {
      call.fail(error)
    }
    open.delete(call)
    fresh.delete(call)
    const record = call.close()
    total.settled++
    if (record.queuedMs > 0) total.waited++
    if (record.retries > 0) total.retried++
    // The slot was given to a waiting call, which has not noticed yet.
    abortSome(10)
    check()
  }
  const running: Promise<void>[] = []
  for (let at = 0; at < callsPerSchedule; at++) {
    running.push(runCall())
    if (at === callsPerSchedule - 5 && seed % 4 === 0) {
      queue.stop(new AppError('draining', 'The server is stopping.'))
    }
    const pauseMs = dice.upTo(60)
    if (pauseMs > 10) jest.advanceTimersByTime(pauseMs)
    if (dice.upTo(2) === 0) await runPendingPromises()
    abortSome(2)
  }
  for (let step = 0; step < 400 && open.size > 0; step++) {
    jest.advanceTimersByTime(50)
    await runPendingPromises()
  }
  if (open.size > 0) total.faults.push(`${open.size} calls never end`)
  await Promise.all(running)
  // The queue looks for capacity once more after the last call.
  jest.advanceTimersByTime(500)
  for (const name of ['gpu', 'other']) {
    const { inFlight, queued } = upstream(name)
    if (inFlight !== 0 || queued !== 0) {
      total.faults.push(`seed ${seed}, ${name}: ${inFlight} in flight, ${queued} queued`)
    }
  }
  if (queue.waiting().length > 0) total.faults.push('calls wait for ever')
  if (jest.getTimerCount() > 0) total.faults.push(`seed ${seed}: timers are left`)
}

test('no slot is lost in random schedules of disconnects, failures, retries and deadlines', async () => {
  const total: Observed = { faults: [], abortedAtGrant: 0, waited: 0, retried: 0, settled: 0 }
  const seeds = 60
  for (let seed = 1; seed <= seeds; seed++) await runSchedule(seed, total)
  expect(total.faults.slice(0, 5)).toEqual([])
  expect(total.settled).toBe(seeds * callsPerSchedule)
  // Otherwise the schedules would not test much.
  expect(total.waited).toBeGreaterThan(seeds * 5)
  expect(total.retried).toBeGreaterThan(seeds)
  expect(total.abortedAtGrant).toBeGreaterThan(20)
})
