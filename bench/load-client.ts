/**
 * A load client in a process of its own: plain TCP, own HTTP/1.1 parser, every event checked.
 * Reads one line of JSON from standard input, a `LoadJob`, and prints one, a `LoadReport`. Exits
 * with the job, at its deadline, or when standard input closes.
 */
import { serveJob } from './support/job-process.ts'
import { connect, type LoadConnection } from './support/load-connection.ts'
import type { LoadJob, LoadReport } from './support/load-job.ts'
import {
  makeProgress,
  makeReport,
  newTally,
  type TallySample,
  takeSample,
} from './support/load-tally.ts'
import { noteFailure } from './support/stream-check.ts'

/** How often to check whether every stream has started. */
const lookEveryMs = 20

function runJob(job: LoadJob, report: (report: LoadReport) => void): void {
  const tally = newTally()
  const startedMs = performance.now()
  const take = () => takeSample(tally, job.measurePid)
  const connections: LoadConnection[] = []
  let opened: TallySample | undefined
  let closed: TallySample | undefined
  let running = job.connections
  const finish = () => {
    const first = opened ?? take()
    report(makeReport(tally, { startedMs, opened: first, closed: closed ?? take() }))
  }
  const onEnd = () => {
    running--
    if (running === 0 && closed !== undefined) finish()
  }
  const openWindow = () => {
    opened = take()
    tally.inWindow = true
    // From here, so that a late start does not shorten it.
    setTimeout(closeWindow, job.windowMs)
  }
  const closeWindow = () => {
    tally.inWindow = false
    closed = take()
    if (running === 0) finish()
    else if (job.mode === 'leave') for (const connection of connections) connection.leave()
  }

  if (job.mode === 'leave') {
    const looking = setInterval(() => {
      if (tally.begun < running) return
      clearInterval(looking)
      setTimeout(openWindow, job.windowStartMs)
    }, lookEveryMs)
  } else setTimeout(openWindow, job.windowStartMs)
  setTimeout(() => {
    noteFailure(tally.faults, `${running} connections had not ended at the deadline`, running)
    finish()
  }, job.deadlineMs)
  if (job.progressMs !== undefined) {
    const print = () => console.error(JSON.stringify(makeProgress(tally, startedMs)))
    setInterval(print, job.progressMs)
  }

  const mayRepeat = () => job.mode === 'repeat' && closed === undefined
  for (let number = 0; number < job.connections; number++) {
    const plan = job.plans[number % job.plans.length]
    if (plan === undefined) throw new Error('the job has no plan')
    const options = { job, plan, tally, mayRepeat, onEnd }
    setTimeout(() => connections.push(connect(options)), (number * job.rampMs) / job.connections)
  }
}

serveJob((job: LoadJob) => new Promise<LoadReport>((report) => runJob(job, report)))
