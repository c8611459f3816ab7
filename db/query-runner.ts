import { AppError } from '#lib/errors.ts'
import { createCircuit, DatabaseUnavailableError } from './circuit.ts'

/** Runs a question that a request waits for; fails with `service_unavailable`, soon. */
export type QueryRunner = <T>(question: () => Promise<T>) => Promise<T>

export function createQueryRunner(answerWaitMaxMs?: number): QueryRunner {
  const circuit = createCircuit(answerWaitMaxMs)
  return async (question) => {
    try {
      return await circuit(question)
    } catch (cause) {
      if (!(cause instanceof DatabaseUnavailableError)) throw cause
      throw new AppError('service_unavailable', 'The database cannot be reached just now.', {
        retryAfterS: 1,
        cause,
      })
    }
  }
}
