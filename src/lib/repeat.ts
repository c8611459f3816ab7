import { orAfter } from './time-limit.ts'

/** Periodic work that never overlaps. */
export type PeriodicTask = {
  /** Runs now, or again after the current run. */
  soon(): void
  /** Resolves when the current run has ended, or after a time limit. */
  stop(): Promise<void>
}

const stopWaitMaxMs = 2_000

/** `everyMs` is the pause between the end of a run and the start of the next one. */
export function repeat(
  work: () => Promise<void>,
  options: {
    everyMs: number
    log: { warn(message: string, fields: { error: unknown }): void }
    failed: string
  },
): PeriodicTask {
  let timer: ReturnType<typeof setTimeout> | undefined
  let running: Promise<void> | undefined
  let again = false
  let stopped = false
  let failing = false

  async function run() {
    try {
      await work()
      failing = false
    } catch (error) {
      // Log the first of consecutive failures only: a database may be down for hours.
      if (!failing) options.log.warn(options.failed, { error })
      failing = true
    }
  }
  function begin() {
    clearTimeout(timer)
    again = false
    running = run().finally(() => {
      running = undefined
      if (stopped) return
      if (again && !failing) begin()
      else wait()
    })
  }
  function wait() {
    timer = setTimeout(begin, options.everyMs)
    timer.unref()
  }
  wait()
  return {
    soon() {
      if (stopped) return
      if (running === undefined) begin()
      else again = true
    },
    async stop() {
      stopped = true
      clearTimeout(timer)
      if (running !== undefined) await orAfter(running, stopWaitMaxMs, undefined)
    },
  }
}
