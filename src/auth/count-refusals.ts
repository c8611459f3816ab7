import { AppError } from '#lib/errors.ts'
import type { Auth } from './auth.ts'

/** The same; `tell` hears of each caller that could not be authenticated, by the kind of the error. */
export function countRefusals(auth: Auth, tell: (kind: string) => void): Auth {
  const counted = <T>(asked: Promise<T>): Promise<T> =>
    asked.catch((error: unknown) => {
      if (error instanceof AppError) tell(error.kind)
      throw error
    })
  return {
    ...auth,
    authenticate: (request) => counted(auth.authenticate(request)),
    authenticateToken: (token) => counted(auth.authenticateToken(token)),
  }
}
