import { join } from 'node:path'
import type { LimitValues } from '#limits/config.ts'
import { eventually } from '#test/support/eventually.ts'

const program = join(import.meta.dir, '../support/limits-process/program.ts')

/** In tokens. */
export type CallSize = { readonly input: number; readonly output: number }

const smallest: CallSize = { input: 1, output: 1 }

export type LeasingProcess = Awaited<ReturnType<typeof startLeasingProcess>>

/**
 * A process of its own with limits on a shared database. Its leases last as long as those of the gateway: on a
 * busy machine, shorter ones end before their exchange does, and their slots are given to others.
 */
export async function startLeasingProcess(options: { databaseUrl: string; limits: LimitValues }) {
  const child = Bun.spawn([process.execPath, program, JSON.stringify(options)], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const outcomes = new Map<string, boolean>()
  const reading = (async () => {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of child.stdout) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const [outcome, call = ''] = line.split(' ')
        outcomes.set(call, outcome === 'admitted')
      }
    }
  })()
  const send = (line: string) => {
    child.stdin.write(`${line}\n`)
    child.stdin.flush()
  }
  let isAlive = true
  return {
    isAlive: () => isAlive,
    begin: (call: string, userId: string, size: CallSize = smallest) =>
      send(`admit ${call} ${userId} ${size.input} ${size.output}`),
    /** Undefined until the process has decided. */
    outcome: (call: string) => outcomes.get(call),
    /** Whether the call was admitted. */
    async admit(call: string, userId: string): Promise<boolean> {
      send(`admit ${call} ${userId} 1 1`)
      await eventually(`a decision on ${call}`, () => outcomes.has(call))
      return outcomes.get(call) ?? false
    },
    end: (call: string, used: CallSize = smallest) =>
      send(`end ${call} - ${used.input} ${used.output}`),
    suspend: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    async kill() {
      isAlive = false
      child.kill('SIGKILL')
      await child.exited
      await reading
    },
    async stop() {
      if (!isAlive) return
      isAlive = false
      child.stdin.end()
      await child.exited
    },
  }
}
