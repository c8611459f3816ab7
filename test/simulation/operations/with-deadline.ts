import { ViolationError } from '../record.ts'

/** Rejects with a violation if the work takes longer. */
export async function withDeadline<T>(what: string, ms: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    const fail = () => reject(new ViolationError('every operation ends', `${what} took ${ms} ms`))
    timer = setTimeout(fail, ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
