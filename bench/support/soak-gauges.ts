import { workGauges } from '#test/support/work-gauges.ts'

const lookEveryMs = 500

/** Waits until all gauges are zero; returns descriptions of those that are not. */
export async function waitForZeroGauges(
  port: number,
  { workers, withinMs }: { readonly workers: number; readonly withinMs: number },
): Promise<readonly string[]> {
  const endMs = performance.now() + withinMs
  for (;;) {
    const restless = await readRestless(port, workers)
    if (restless.length === 0 || performance.now() > endMs) return restless
    await Bun.sleep(lookEveryMs)
  }
}

async function readRestless(port: number, workers: number): Promise<readonly string[]> {
  const lines = (await readPage(port)).split('\n')
  const [running] = lines.filter((line) => line.startsWith('sluice_workers_running '))
  const missing = workers - Number(running?.split(' ')[1] ?? 0)
  return [...(missing > 0 ? [`${missing} workers do not run`] : []), ...lines.filter(isNonZero)]
}

/** Number of event loop delays above one second, and of samples, over all workers. */
export async function readLateLoops(port: number): Promise<[number, number]> {
  const page = await readPage(port)
  const value = (pattern: RegExp) => Number(pattern.exec(page)?.[1] ?? 0)
  const all = value(/^sluice_event_loop_lag_seconds_count (\d+)/m)
  return [all - value(/^sluice_event_loop_lag_seconds_bucket\{le="1"\} (\d+)/m), all]
}

/** The metrics of all workers. */
async function readPage(port: number): Promise<string> {
  return (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
}

function isNonZero(line: string): boolean {
  const name = /^[a-z_]+/.exec(line)?.[0] ?? ''
  return workGauges.includes(name) && Number(line.slice(line.lastIndexOf(' ') + 1)) !== 0
}
