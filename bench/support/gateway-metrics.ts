import { StartError } from './children.ts'

/**
 * One figure of `GET /metrics`, all its series together; of one worker, so it is for gateways that
 * have one.
 */
async function readMetric(port: number, name: string): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`)
  const lines = (await answer.text()).split('\n')
  const values = lines
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)))
  if (values.length === 0) throw new StartError(`the gateway has no figure ${name}`)
  return values.reduce((sum, value) => sum + value, 0)
}

/** Waits until no generation runs; gives how many still run when time is up. */
export async function waitForIdle(port: number, deadlineMs: number): Promise<number> {
  const endMs = performance.now() + deadlineMs
  for (;;) {
    const running = await readMetric(port, 'sluice_generations_running')
    if (running === 0 || performance.now() > endMs) return running
    await Bun.sleep(50)
  }
}
