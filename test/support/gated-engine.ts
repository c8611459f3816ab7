import type { Engine, EngineSession } from '#speech/engine.ts'

/** An engine that processes audio only while the test allows it. */
export type GatedEngine = Engine & {
  /** Processes everything from now on. */
  release(): void
  /** Processes nothing until released. */
  hold(): void
  /** Sessions that were asked to end. */
  endsAsked(): number
}

type Job = (session: EngineSession) => void

/** Delays the calls of `inner` until released, in order. */
export function createGatedEngine(inner: Engine): GatedEngine {
  const waiting: (() => void)[] = []
  let isOpen = false
  let endsAsked = 0
  const pass = (job: () => void) => {
    if (isOpen) job()
    else waiting.push(job)
  }
  return {
    ...inner,
    async open(options) {
      const session = await inner.open(options)
      const later = (job: Job) => pass(() => job(session))
      return {
        write: (samples) => later(({ write }) => write.call(session, samples)),
        finalize: () => later(({ finalize }) => finalize.call(session)),
        end() {
          endsAsked++
          later(({ end }) => end.call(session))
        },
        abort: () => session.abort(),
      }
    },
    release() {
      isOpen = true
      for (const job of waiting.splice(0)) job()
    },
    hold() {
      isOpen = false
    },
    endsAsked: () => endsAsked,
  }
}
