/** The outcome of the work, or `late` once the limit has passed; the work itself goes on. */
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

/** The outcome of the work, or the error that `late` makes once the limit has passed. */
export async function withTimeLimit<T>(
  work: Promise<T>,
  limitMs: number,
  late: () => Error,
): Promise<T> {
  const outcome = await orAfter<T, typeof expired>(work, limitMs, expired)
  if (outcome === expired) throw late()
  return outcome
}
