import postgres from 'postgres'

/** How long a small transaction took on this machine, whenever in the run. */
export type Slowness = {
  /** The longest that was under way in this span. */
  worstMs(fromMs: number, toMs: number): number
  stop(): Promise<void>
}

const pauseMs = 50

/** Commits a small transaction all the time: what the gateway promises assumes a database that answers. */
export function watchSlowness(url: string): Slowness {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  const spans: { readonly fromMs: number; readonly toMs: number }[] = []
  let isStopped = false
  async function watch() {
    while (!isStopped) {
      const fromMs = performance.now()
      await Bun.sleep(pauseMs)
      // It fails while the server is down, which is a fault of its own.
      await sql`select pg_current_xact_id()`.catch(() => {})
      spans.push({ fromMs, toMs: performance.now() })
    }
  }
  const watching = watch()
  return {
    worstMs(fromMs, toMs) {
      const during = spans.filter((span) => span.fromMs <= toMs && span.toMs >= fromMs)
      return Math.max(0, ...during.map((span) => span.toMs - span.fromMs - pauseMs))
    },
    async stop() {
      isStopped = true
      await watching
      await sql.end({ timeout: 1 })
    },
  }
}
