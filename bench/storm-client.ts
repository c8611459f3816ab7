/**
 * Clients that connect and mostly disconnect before their response is complete, in a process of
 * their own. Reads a `StormJob` and prints a `StormReport`.
 */
import { Histogram } from './support/histogram.ts'
import { serveJob } from './support/job-process.ts'
import { wallClockMs } from './support/plan.ts'
import { StormClient } from './support/storm-client.ts'
import {
  behaviours,
  type Disconnect,
  responseMs,
  type StormJob,
  type StormReport,
} from './support/storm-job.ts'
import { noFaults, noteFailure } from './support/stream-check.ts'

/** Time until all clients are running. */
const rampMs = 1_000
/** Deadline of responses to clients that stay connected. */
const stayMs = 30_000

async function run(job: StormJob): Promise<StormReport> {
  const left: Disconnect[] = []
  const stayedMs = new Histogram()
  const faults = noFaults()
  const fail = (sentence: string) => noteFailure(faults, sentence)
  const behaviourOf = behaviours(job.seed)
  const endMs = performance.now() + job.lastsMs
  let nextId = 0
  let stayed = 0
  let events = 0

  await Promise.all(
    Array.from({ length: job.clients }, async (_, number) => {
      await Bun.sleep((number / job.clients) * rampMs)
      while (performance.now() < endMs) await comeAndGo()
    }),
  )
  return { left, stayed, events, stayedMs: stayedMs.quantiles(), faults }

  async function comeAndGo(): Promise<void> {
    const behaviour = behaviourOf(nextId++)
    const { spec, leavesAfterMs } = behaviour
    const client = new StormClient(behaviour, job)
    const startedMs = performance.now()
    try {
      await client.open()
      await Promise.race([client.over, Bun.sleep(leavesAfterMs ?? stayMs)])
      if (client.isWhole) {
        stayed++
        stayedMs.record(performance.now() - startedMs - responseMs(spec))
        client.leave()
      } else if (client.fault === null) {
        left.push({ id: spec.id, stage: client.stage, atMs: wallClockMs() })
        client.leave()
        if (leavesAfterMs === null) fail(`request ${spec.id} had no response after ${stayMs} ms`)
      }
      if (client.fault !== null) fail(client.fault)
    } catch (error) {
      fail(String(error))
    }
    events += client.events
  }
}

serveJob(run)
