/**
 * The callers of `traffic`, in a process of their own. Reads a `TrafficJob` and prints a
 * `TrafficReport`.
 */
import { isRecord } from '#lib/json.ts'
import { serveJob } from './support/job-process.ts'
import { seededRandom, wallClockMs } from './support/plan.ts'
import type { TrafficJob, TrafficReport } from './support/traffic-job.ts'

/** A caller that was refused looks whether it may send again after this time. */
const refusedPauseMs = 100
const endMs = 30_000

type Caller = { sent: number; completed: number; waitsMs: number[]; outstanding: number }

async function run(job: TrafficJob): Promise<TrafficReport> {
  const random = seededRandom(job.seed)
  const callers: Caller[] = job.bearers.map(() => ({
    sent: 0,
    completed: 0,
    waitsMs: [],
    outstanding: 0,
  }))
  const refused: Record<string, number> = {}
  const byUpstream: Record<string, number> = {}
  let withoutRetryAfter = 0
  const startMs = performance.now()
  const stopMs = job.windowStartMs + job.windowMs
  const elapsedMs = () => performance.now() - startMs
  const running = new Set<Promise<void>>()
  const end = AbortSignal.timeout(stopMs + endMs)

  const call = async (at: number): Promise<boolean> => {
    const caller = callers[at]
    if (caller === undefined) return false
    const isCounted = elapsedMs() >= job.windowStartMs && elapsedMs() < stopMs
    if (isCounted) caller.sent++
    const sentAtMs = wallClockMs()
    const response = await fetch(`http://127.0.0.1:${job.port}/v1/responses`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${job.bearers[at]}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ model: job.model, input: 'Say who you are.', store: false }),
      signal: end,
    })
    const body: unknown = await response.json()
    if (!isCounted) return response.ok
    if (!response.ok) {
      const error = isRecord(body) && isRecord(body['error']) ? body['error'] : {}
      const reason = `${response.status} ${error['code']}`
      refused[reason] = (refused[reason] ?? 0) + 1
      const isRefusal = response.status === 429 || response.status === 503
      if (isRefusal && response.headers.get('retry-after') === null) withoutRetryAfter++
      return false
    }
    const [, upstream = '', arrivedAtMs = ''] =
      /"text":"(\S+) ([\d.]+)"/.exec(JSON.stringify(body)) ?? []
    caller.completed++
    caller.waitsMs.push(Number(arrivedAtMs) - sentAtMs)
    byUpstream[upstream] = (byUpstream[upstream] ?? 0) + 1
    return true
  }

  const start = (at: number): Promise<boolean> => {
    const caller = callers[at]
    if (caller === undefined || caller.outstanding >= (job.outstanding[at] ?? 0)) {
      return Promise.resolve(false)
    }
    caller.outstanding++
    const calling = call(at)
      .catch((error) => {
        const reason = `no response: ${error instanceof Error ? error.name : error}`
        refused[reason] = (refused[reason] ?? 0) + 1
        return false
      })
      .finally(() => {
        caller.outstanding--
      })
    const tracked = calling.then(() => {
      running.delete(tracked)
    })
    running.add(tracked)
    return calling
  }

  await Promise.all(
    callers.map(async (_, at) => {
      const perSecond = job.perSecond?.[at]
      if (perSecond === undefined) {
        await Promise.all(Array.from({ length: job.outstanding[at] ?? 0 }, () => repeat(at)))
        return
      }
      for (let dueMs = (random() * 1_000) / perSecond; dueMs < stopMs; ) {
        await Bun.sleep(Math.max(0, dueMs - elapsedMs()))
        void start(at)
        dueMs += (-Math.log(1 - random()) * 1_000) / perSecond
      }
    }),
  )
  await Promise.all(running)
  return { callers, refused, withoutRetryAfter, byUpstream }

  async function repeat(at: number): Promise<void> {
    while (elapsedMs() < stopMs) {
      if (!(await start(at))) await Bun.sleep(refusedPauseMs)
    }
  }
}

serveJob(run)
