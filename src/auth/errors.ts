import { AppError } from '#lib/errors.ts'

/** A valid credential of a user that an administrator disabled. */
export function userDisabled(kind: 'invalid_token' | 'invalid_api_key'): AppError {
  return new AppError(kind, 'This user was disabled by an administrator.', {
    code: 'user_disabled',
  })
}
