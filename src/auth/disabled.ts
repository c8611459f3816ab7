import { AppError, type ErrorKind } from '#lib/errors.ts'

export const userDisabled = {
  code: 'user_disabled',
  message: 'This user was disabled by an administrator.',
}

/** For a credential that is in order, of somebody who is not to come in. */
export function refuseDisabled(
  kind: Extract<ErrorKind, 'invalid_token' | 'invalid_api_key'>,
): AppError {
  return new AppError(kind, userDisabled.message, { code: userDisabled.code })
}
