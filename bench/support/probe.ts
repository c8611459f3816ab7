import { Histogram, type Quantiles } from './histogram.ts'
import { type Faults, noteFailure } from './stream-check.ts'

/** Interval short enough to detect blocking of some milliseconds. */
export const probeEveryMs = 20

export type ProbeOptions = {
  readonly url: string
  readonly everyMs: number
  /** Evaluated per request. */
  readonly headers?: () => Record<string, string>
  /** Records responses other than 200 as failures. */
  readonly faults: Faults
}

export type Probe = { end(): Promise<Quantiles> }

/** Polls a URL sequentially and records the latency. Accurate only if its own process is idle. */
export function startProbe({ url, everyMs, headers, faults }: ProbeOptions): Probe {
  const latency = new Histogram()
  let isOver = false

  async function ask(): Promise<void> {
    const askedAt = performance.now()
    try {
      const httpResponse = await fetch(url, { headers: headers?.() ?? {} })
      const text = await httpResponse.text()
      if (httpResponse.status !== 200) fail(`status ${httpResponse.status}: ${text}`)
    } catch (error) {
      fail(String(error))
    }
    const tookMs = performance.now() - askedAt
    latency.record(tookMs)
    await Bun.sleep(Math.max(0, everyMs - tookMs))
  }

  function fail(sentence: string): void {
    noteFailure(faults, `${new URL(url).pathname}: ${sentence}`)
  }

  async function probe(): Promise<void> {
    while (!isOver) await ask()
  }

  const probing = probe()
  return {
    async end() {
      isOver = true
      await probing
      return latency.quantiles()
    },
  }
}

/** Latency of /livez, which shows event loop delay. */
export function startLivezProbe({ port }: { readonly port: number }, faults: Faults): Probe {
  return startProbe({ url: `http://127.0.0.1:${port}/livez`, everyMs: probeEveryMs, faults })
}
