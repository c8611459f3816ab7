/** Invalid options; nothing has been started. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Includes errors of `parseArgs` for unknown options. */
export function isUsageError(error: unknown): error is Error {
  if (error instanceof UsageError) return true
  return error instanceof TypeError && 'code' in error && `${error.code}`.startsWith('ERR_PARSE')
}

export function numberIn(
  text: string,
  bounds: { readonly name: string; readonly from: number; readonly to: number },
): number {
  const value = Number(text)
  if (value >= bounds.from && value <= bounds.to) return value
  throw new UsageError(`--${bounds.name} is a number from ${bounds.from} to ${bounds.to}`)
}

export function oneOf<Word extends string>(
  text: string,
  choice: { readonly name: string; readonly words: readonly Word[] },
): Word {
  const found = choice.words.find((word) => word === text)
  if (found !== undefined) return found
  throw new UsageError(`--${choice.name} is one of ${choice.words.join(', ')}`)
}

/** Comma-separated choices, each at most once. */
export function someOf<Word extends string>(
  text: string,
  choice: { readonly name: string; readonly words: readonly Word[] },
): Word[] {
  return [...new Set(text.split(',').map((word) => oneOf(word, choice)))]
}
