import { jest } from 'bun:test'
import type { QueueSettings } from '#inference/fair-queue/call-queue.ts'
import { type HeapItem, IndexedHeap } from '#inference/fair-queue/indexed-heap.ts'
import { nothingTried, type Tried } from '#inference/routing/usable.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { makeCall, startQueue } from '#test/support/queued-calls.ts'
import { seededRandom } from '#test/support/seeded-random.ts'

/** Callers, the router with its queue, and upstreams, in virtual time. Tests use fake timers. */

export type SimulatedUpstream = {
  readonly name: string
  readonly slots: number
  /** For a call of `tokensPerService`. */
  readonly serviceMs: number
  /** Refuses connections, and cuts what is in flight. */
  readonly downMs?: { readonly from: number; readonly until: number }
}

export type SimulatedCaller = {
  /** The mean time between two calls; `Infinity`: only as many calls as `outstanding`. */
  readonly everyMs: number
  /** Calls that are sent again as soon as they end. */
  readonly outstanding: number
  /** Output tokens of a call. */
  readonly tokens: number
  readonly priority?: 'background' | 'batch'
}

export const tokensPerService = 300

type CallerResult = {
  /** Tokens of its calls: sent, and served. */
  demanded: number
  served: number
  refused: number
  waitsMs: number[]
}

type UpstreamResult = {
  readonly given: SimulatedUpstream
  served: number
  /** Slots in use, times their time. */
  busyMs: number
  /** Calls that were sent to it while it was down. */
  noticed: number
  /** Calls that it cut when it went down. */
  cut: number
}

type RunningUpstream = UpstreamResult & {
  running: number
  changedMs: number
  readonly cuts: Set<() => void>
}

type Event = HeapItem & { readonly atMs: number; readonly run: () => void }

/** What happened after `warmUpMs`. */
export async function simulateTraffic(given: {
  readonly seed: number
  readonly upstreams: readonly SimulatedUpstream[]
  readonly callers: readonly SimulatedCaller[]
  readonly warmUpMs: number
  readonly forMs: number
  readonly settings?: Partial<QueueSettings>
}) {
  const random = seededRandom(given.seed)
  let nowMs = 0
  const events = new IndexedHeap<Event>((left, right) => left.atMs < right.atMs)
  const after = (ms: number, run: () => void) => {
    events.add({ atMs: nowMs + ms, run, heapIndex: -1 })
  }
  const isDown = (name: string) => {
    const downMs = given.upstreams.find((each) => each.name === name)?.downMs
    return downMs !== undefined && nowMs >= downMs.from && nowMs < downMs.until
  }
  const started = startQueue({
    nowMs: () => nowMs,
    random,
    probes: {
      reach: async ({ name }) => !isDown(name),
      generate: async ({ upstream }) => !isDown(upstream.name),
    },
    slotsOf: (name) => given.upstreams.find((each) => each.name === name)?.slots ?? 0,
    ...(given.settings === undefined ? {} : { settings: given.settings }),
  })
  const { router } = started
  const names = given.upstreams.map(({ name }) => name)
  const callers: CallerResult[] = given.callers.map(() => ({
    demanded: 0,
    served: 0,
    refused: 0,
    waitsMs: [],
  }))
  const untilMs = given.warmUpMs + given.forMs
  const isMeasured = () => nowMs >= given.warmUpMs
  const upstreams = new Map(given.upstreams.map((each) => [each.name, startUpstream(each)]))
  const upstreamOf = (name: string) => {
    const upstream = upstreams.get(name)
    if (upstream === undefined) throw new Error(`no upstream ${name}`)
    return upstream
  }
  /** Adds the slots in use since the last change. */
  const change = (upstream: RunningUpstream, by: number) => {
    const sinceMs = Math.max(upstream.changedMs, given.warmUpMs)
    upstream.busyMs += upstream.running * Math.max(0, Math.min(nowMs, untilMs) - sinceMs)
    upstream.running += by
    upstream.changedMs = nowMs
  }

  const serve = (name: string, tokens: number) =>
    new Promise<void>((resolve, reject) => {
      const upstream = upstreamOf(name)
      const { serviceMs } = upstream.given
      if (isDown(name)) {
        upstream.noticed++
        reject(new AppError('upstream_unreachable', 'Connection refused.'))
        return
      }
      const end = () => {
        upstream.cuts.delete(cut)
        change(upstream, -1)
      }
      const cut = () => {
        end()
        upstream.cut++
        reject(new AppError('upstream_truncated', 'The connection broke.'))
      }
      upstream.cuts.add(cut)
      change(upstream, 1)
      after((serviceMs * tokens) / tokensPerService, () => {
        if (!upstream.cuts.has(cut)) return
        end()
        if (isMeasured()) upstream.served++
        resolve()
      })
    })

  const send = async (at: number): Promise<void> => {
    const caller = given.callers[at]
    const result = callers[at]
    if (caller === undefined || result === undefined) return
    const { tokens, priority } = caller
    const { call, client } = makeCall({
      upstreams: names,
      userId: `caller-${at}`,
      ...(priority === undefined ? {} : { priority }),
    })
    const sentMs = nowMs
    if (isMeasured()) result.demanded += tokens
    let tried: Tried = nothingTried
    for (let attempts = 0; attempts < 4; attempts++) {
      try {
        const slot = router.take(call, tried) ?? (await router.wait(call, tried, client.signal))
        const waitedMs = nowMs - sentMs
        try {
          await serve(slot.target.upstream.name, tokens)
          slot.answered()
          slot.usage = usageOf(tokens)
          slot.end(null)
        } catch (error) {
          slot.end(toAppError(error))
          tried = { targets: [...tried.targets, slot.target], isPermanent: false }
          continue
        }
        if (sentMs < given.warmUpMs) return
        result.served += tokens
        result.waitsMs.push(waitedMs)
        return
      } catch {
        break
      }
    }
    if (isMeasured()) result.refused++
  }

  for (const [at, { everyMs, outstanding }] of given.callers.entries()) {
    const repeat = () => {
      void send(at).then(() => after(1, repeat))
    }
    for (let number = 0; number < outstanding; number++) after(random() * 10, repeat)
    if (everyMs === Number.POSITIVE_INFINITY) continue
    const arrive = () => {
      void send(at)
      after(-Math.log(1 - random()) * everyMs, arrive)
    }
    after(random() * everyMs, arrive)
  }
  const check = () => {
    router.check()
    after(checkEveryMs, check)
  }
  after(checkEveryMs, check)
  for (const upstream of upstreams.values()) {
    const { downMs } = upstream.given
    if (downMs === undefined) continue
    after(downMs.from, () => {
      for (const cut of [...upstream.cuts]) cut()
    })
  }
  for (let next = events.first; next !== undefined && next.atMs <= untilMs; next = events.first) {
    events.remove(next)
    jest.advanceTimersByTime(next.atMs - nowMs)
    nowMs = next.atMs
    next.run()
    for (let turn = 0; turn < turnsPerEvent; turn++) await Promise.resolve()
  }
  nowMs = untilMs
  for (const upstream of upstreams.values()) change(upstream, 0)
  return { callers, upstreams }
}

const checkEveryMs = 250
/** Of the event loop: enough for a call to go on after its slot, its failure or its end. */
const turnsPerEvent = 12

function startUpstream(given: SimulatedUpstream): RunningUpstream {
  return {
    given,
    served: 0,
    busyMs: 0,
    noticed: 0,
    cut: 0,
    running: 0,
    changedMs: 0,
    cuts: new Set(),
  }
}

function usageOf(outputTokens: number) {
  return {
    inputTokens: 0,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    outputTokens,
    reasoningTokens: 0,
    totalTokens: outputTokens,
  }
}
