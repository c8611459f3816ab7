/** An error that does not end the session; most errors of this protocol do not. */
export class RealtimeError extends Error {
  override readonly name = 'RealtimeError'
  readonly code: string
  readonly param: string | null

  constructor(code: string, publicMessage: string, param: string | null = null) {
    super(publicMessage)
    this.code = code
    this.param = param
  }
}

/** The part of an invalid value that an error repeats. */
const valueCharsMax = 64

export function invalidValue(
  param: string,
  value: unknown,
  supported: readonly string[],
): RealtimeError {
  const shown = String(typeof value === 'object' ? JSON.stringify(value) : value)
  const values = supported.map((name) => `'${name}'`).join(', ')
  const message = `Invalid value: '${shown.slice(0, valueCharsMax)}'. Supported values are: ${values}.`
  return new RealtimeError('invalid_value', message, param)
}

export function unsupported(param: string, feature: string): RealtimeError {
  return new RealtimeError(
    'unsupported_parameter',
    `This gateway does not support ${feature}.`,
    param,
  )
}
