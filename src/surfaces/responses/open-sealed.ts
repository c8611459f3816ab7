import { AppError } from '#lib/errors.ts'

/** Opens what a caller brings back; the refusal of a seal names the field that holds it. */
export function openSealed<T>(open: (sealed: string) => T, sealed: string, param: string): T {
  try {
    return open(sealed)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new AppError(error.kind, error.message, { param, cause: error })
  }
}
