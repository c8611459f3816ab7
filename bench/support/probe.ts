import { Histogram, type Quantiles } from './histogram.ts'
import { type Faults, noteFailure } from './stream-check.ts'

/** Often enough to meet what lets others wait for some milliseconds. */
export const probeEveryMs = 20

export type ProbeOptions = {
  readonly url: string
  readonly everyMs: number
  /** Asked for each request anew. */
  readonly headers?: () => Record<string, string>
  /** Whatever is not answered with 200 is noted here as failed. */
  readonly faults: Faults
}

export type Probe = { end(): Promise<Quantiles> }

/**
 * Asks for an address again and again, one request after the other, and takes the time of each
 * answer. It measures only as well as the process that it runs in is idle.
 */
export function startProbe({ url, everyMs, headers, faults }: ProbeOptions): Probe {
  const answers = new Histogram()
  let isOver = false

  async function ask(): Promise<void> {
    const askedAt = performance.now()
    try {
      const answer = await fetch(url, { headers: headers?.() ?? {} })
      const text = await answer.text()
      if (answer.status !== 200) fail(`status ${answer.status}: ${text}`)
    } catch (error) {
      fail(String(error))
    }
    const tookMs = performance.now() - askedAt
    answers.record(tookMs)
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
      return answers.quantiles()
    },
  }
}

/** How long a gateway takes to say that it lives, which is what its event loop lets wait. */
export function startLivezProbe({ port }: { readonly port: number }, faults: Faults): Probe {
  return startProbe({ url: `http://127.0.0.1:${port}/livez`, everyMs: probeEveryMs, faults })
}
