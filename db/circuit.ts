import { withTimeLimit } from '#lib/time-limit.ts'

/** The database cannot be asked just now; nothing is wrong with the question. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError'
}

/** Runs a question to the database, or fails with a `DatabaseUnavailableError` without waiting long. */
export type Circuit = <T>(ask: () => Promise<T>) => Promise<T>

/** How long an answer is waited for, unless the questions are known to take longer. */
const usualWaitMaxMs = 2_000
/** After a failure nobody is kept waiting for this long: the client would queue without limit. */
const pauseMs = 1_000
const pendingMax = 1_000

/** Keeps requests short while the database is away. For questions on the path of a request. */
export function createCircuit(answerWaitMaxMs = usualWaitMaxMs): Circuit {
  let pending = 0
  let pausedUntil = Number.NEGATIVE_INFINITY
  /** A question is pending until it is answered, also when nobody waits for it any more. */
  async function counted<T>(ask: () => Promise<T>): Promise<T> {
    pending += 1
    try {
      return await ask()
    } finally {
      pending -= 1
    }
  }
  return async (ask) => {
    if (performance.now() < pausedUntil) {
      throw new DatabaseUnavailableError('the database did not answer a moment ago')
    }
    if (pending >= pendingMax) {
      throw new DatabaseUnavailableError(`${pendingMax} questions to the database are pending`)
    }
    try {
      return await withTimeLimit(counted(ask), answerWaitMaxMs, () => {
        return new DatabaseUnavailableError(`no answer within ${answerWaitMaxMs} ms`)
      })
    } catch (error) {
      if (!isUnavailability(error)) throw error
      pausedUntil = performance.now() + pauseMs
      throw new DatabaseUnavailableError('the database does not answer', { cause: error })
    }
  }
}

/** SQLSTATE classes: 08 connection, 53 out of resources, 57P0x shutting down or starting up. */
const unavailableState = /^(08|53|57P)/

function isUnavailability(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof DatabaseUnavailableError) return true
  if (error.name === 'PostgresError') {
    return 'code' in error && unavailableState.test(String(error.code))
  }
  // What has a code and did not come from PostgreSQL came from the connection or its client.
  if ('code' in error && typeof error.code === 'string') return true
  return isUnavailability(error.cause)
}
