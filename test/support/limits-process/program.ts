import { createInterface } from 'node:readline'
import { openDatabase } from '#db/client.ts'
import type { Reservation } from '#inference/inference.ts'
import { createLimits } from '#limits/create-limits.ts'
import { ended, generationCall } from '#test/limits/admitting.ts'

/**
 * A process with limits on a shared database. Reads commands from its input (`admit CALL USER`,
 * `end CALL`, each with input and output tokens) until it ends, and writes `admitted CALL` or
 * `refused CALL`.
 */
const { databaseUrl, limits: values } = JSON.parse(process.argv[2] ?? '{}')
const log = { debug() {}, info() {}, warn() {}, error() {} }
const database = await openDatabase({ databaseUrl, dataFolder: '', connectionsMax: 2, log })
const scopes = { default: values, group: {}, user: {}, model: {} }
const limits = createLimits({
  budgets: null,
  database,
  scopes: () => scopes,
  log,
  clockMs: () => performance.now(),
  now: () => new Date(),
  sleep: Bun.sleep,
  onRefused() {},
  onExchange() {},
})
const running = new Map<string, Reservation>()

async function admit(id: string, userId: string, size: Size): Promise<void> {
  try {
    const reservation = await limits.admit(...generationCall({ userId }, callOf(id, size)))
    if (reservation !== null) running.set(id, reservation)
    console.log(`admitted ${id}`)
  } catch {
    console.log(`refused ${id}`)
  }
}

type Size = { readonly input: number; readonly output: number }

/** Each call has a model of its own, so the reservation of its output is that of the call. */
function callOf(id: string, { input, output }: Size) {
  return { model: id, inputTokens: input, outputTokens: output }
}

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, id = '', userId = '', input = '1', output = '1'] = line.split(' ')
  const size = { input: Number(input), output: Number(output) }
  if (verb === 'admit') void admit(id, userId, size)
  if (verb === 'end') {
    running.get(id)?.settle(ended(size))
    running.delete(id)
  }
}
await limits.close()
await database.close()
