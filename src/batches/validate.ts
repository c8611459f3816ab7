import type { Config } from '#config/schema.ts'
import type { Storage } from '#storage/storage.ts'
import type { Batch, BatchError } from './batches.ts'
import { readInputLines } from './input-lines.ts'
import type { LineStore, NewLine } from './line-store.ts'
import { duplicateId, type LineLimits, readLine } from './validate-line.ts'

type ValidateDeps = {
  storage: Pick<Storage, 'read'>
  lines: Pick<LineStore, 'insert'>
  config: { batches: Config['batches']; limits: LineLimits }
}

type Validated = {
  readonly errors: readonly BatchError[]
  readonly total: number
  readonly model: string | null
}

const linesPerInsert = 500
/** Further ones are not reported. */
const errorsMax = 100

/** Reads the input as a stream, and adds its lines to the database. */
export async function validateInput(
  { storage, lines, config }: ValidateDeps,
  batch: Batch,
  signal: AbortSignal,
): Promise<Validated> {
  const { linesMax, perBatchMax } = config.batches
  const { limits } = config
  const errors: BatchError[] = []
  let total = 0
  let model: string | null = null
  let waiting: NewLine[] = []
  const insert = async () => {
    for (const line of await lines.insert(batch.id, waiting)) {
      const { customId = '' } = waiting.find((one) => one.line === line) ?? {}
      errors.push(duplicateId(customId, line))
    }
    waiting = []
  }
  const source = await storage.read(batch.inputSha256)
  for await (const input of readInputLines(source, limits.requestBytesMax)) {
    signal.throwIfAborted()
    total++
    if (total > linesMax) {
      errors.unshift(problemOf('too_many_lines', `A batch may have ${linesMax} requests.`))
      break
    }
    const read = readLine(input, batch.endpoint, limits)
    if ('code' in read) {
      errors.push(read)
    } else if (errors.length === 0) {
      const name = read.body['model']
      model ??= typeof name === 'string' ? name : null
      waiting.push({
        line: input.line,
        slot: total % perBatchMax,
        customId: read.customId,
        startByte: input.startByte,
        bytes: input.content?.length ?? 0,
      })
      if (waiting.length >= linesPerInsert) await insert()
    }
    if (errors.length >= errorsMax) break
  }
  await insert()
  if (total === 0) errors.push(problemOf('empty_file', 'The input has no requests.'))
  return { errors: errors.slice(0, errorsMax), total, model }
}

function problemOf(code: string, message: string): BatchError {
  return { code, message, param: null, line: null }
}
