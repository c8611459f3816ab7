import { orAfter } from './time-limit.ts'

/** Work that is done again and again, never twice at a time. */
export type Repeated = {
  /** At once, or as soon as what is under way has ended. */
  soon(): void
  /** Resolves when nothing is under way any more, or hangs. */
  stop(): Promise<void>
}

const stopWaitMaxMs = 2_000

/** The pause lies between the end of one time and the begin of the next. */
export function repeat(
  work: () => Promise<void>,
  options: {
    everyMs: number
    log: { warn(message: string, fields: { error: unknown }): void }
    failed: string
  },
): Repeated {
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
      // One line for each time that it begins to fail: a database may be away for hours.
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
