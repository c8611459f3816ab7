/** Gauges of work in progress; zero at rest. */
const gauges = [
  'sluice_generations_running',
  'sluice_responses_running',
  'sluice_websockets_open',
  'sluice_websockets_busy',
  'sluice_speech_connections',
  'sluice_speech_sessions',
  'sluice_speech_sessions_waiting',
  'sluice_speech_queued_bytes',
  'sluice_speech_unread_bytes',
  'sluice_jobs',
]
/** Connections opened to reach every worker. */
const connectionsPerWorker = 16
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
  const pages = await readPages(port, workers)
  const missing = workers - pages.length
  return [
    ...(missing > 0 ? [`${missing} workers did not respond`] : []),
    ...pages.flatMap((page) => page.split('\n').filter(isNonZero)),
  ]
}

/** Number of event loop delays above one second, and of samples, over all workers. */
export async function readLateLoops(port: number, workers: number): Promise<[number, number]> {
  const pages = (await readPages(port, workers)).join('\n')
  const sum = (pattern: RegExp) =>
    [...pages.matchAll(pattern)].reduce((total, [, value]) => total + Number(value), 0)
  const all = sum(/^sluice_event_loop_lag_seconds_count\S* (\d+)/gm)
  return [all - sum(/^sluice_event_loop_lag_seconds_bucket\{\S*le="1"\S* (\d+)/gm), all]
}

/** Metrics of each worker that was reached. */
async function readPages(port: number, workers: number): Promise<string[]> {
  const met = new Map<string, string>()
  for (let tries = 0; met.size < workers && tries < workers * connectionsPerWorker; tries++) {
    const headers = { connection: 'close' }
    const page = await (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).text()
    met.set(/worker="([^"]*)"/.exec(page)?.[1] ?? '', page)
  }
  return [...met.values()]
}

function isNonZero(line: string): boolean {
  const name = /^[a-z_]+/.exec(line)?.[0] ?? ''
  return gauges.includes(name) && Number(line.slice(line.lastIndexOf(' ') + 1)) !== 0
}
