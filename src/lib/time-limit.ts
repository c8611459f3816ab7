/** The result of the work, or `late` after the limit; the work itself continues. */
export async function orAfter<T, L>(work: Promise<T>, limitMs: number, late: L): Promise<T | L> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const expiry = new Promise<L>((resolve) => {
    timer = setTimeout(resolve, limitMs, late)
  })
  try {
    return await Promise.race([work, expiry])
  } finally {
    clearTimeout(timer)
  }
}

const expired = Symbol('expired')

/** The result of the work, or the error that `late` creates after the limit. */
export async function withTimeLimit<T>(
  work: Promise<T>,
  limitMs: number,
  late: () => Error,
): Promise<T> {
  const outcome = await orAfter<T, typeof expired>(work, limitMs, expired)
  if (outcome === expired) throw late()
  return outcome
}
