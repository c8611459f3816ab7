/** Runs tasks, so many at a time, in order; gives the outcome of each in its place. */
export function runAtOnce<T>(
  tasks: readonly (() => Promise<T>)[],
  atOnceMax: number,
): readonly Promise<T>[] {
  const places = tasks.map((task) => ({ task, ...Promise.withResolvers<T>() }))
  const queue = places.values()
  const work = async () => {
    for (const { task, resolve, reject } of queue) await task().then(resolve, reject)
  }
  for (let running = 0; running < atOnceMax; running++) void work()
  return places.map(({ promise }) => {
    // Whoever leaves at the first failure does not hear of the others.
    promise.catch(() => {})
    return promise
  })
}
