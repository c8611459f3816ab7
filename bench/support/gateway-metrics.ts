import { StartError } from './children.ts'

/** Sum of all series of one metric of `GET /metrics`, for gateways with one worker. */
async function readMetric(port: number, name: string): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`)
  const lines = (await answer.text()).split('\n')
  const values = lines
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)))
  if (values.length === 0) throw new StartError(`the gateway has no figure ${name}`)
  return values.reduce((sum, value) => sum + value, 0)
}

/** Waits until no generation runs; returns how many still run at the deadline. */
export async function waitForIdle(port: number, deadlineMs: number): Promise<number> {
  const endMs = performance.now() + deadlineMs
  for (;;) {
    const running = await readMetric(port, 'sluice_generations_running')
    if (running === 0 || performance.now() > endMs) return running
    await Bun.sleep(50)
  }
}
