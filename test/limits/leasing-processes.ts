import { join } from 'node:path'
import type { LimitValues } from '#limits/config.ts'
import { eventually } from '#test/support/eventually.ts'

const program = join(import.meta.dir, '../support/limits-process/program.ts')

export type LeasingProcess = Awaited<ReturnType<typeof startLeasingProcess>>

/** A process of its own with limits on a shared database. */
export async function startLeasingProcess(options: {
  databaseUrl: string
  limits: LimitValues
  leaseMs: number
}) {
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
    begin: (call: string, userId: string) => send(`admit ${call} ${userId}`),
    /** Undefined until the process has decided. */
    outcome: (call: string) => outcomes.get(call),
    /** Whether the call was admitted. */
    async admit(call: string, userId: string): Promise<boolean> {
      send(`admit ${call} ${userId}`)
      await eventually(`a decision on ${call}`, () => outcomes.has(call))
      return outcomes.get(call) ?? false
    },
    end: (call: string) => send(`end ${call}`),
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
