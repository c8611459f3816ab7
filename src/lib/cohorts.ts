/** Larger cohorts save no more, and of a burst the first would wait for the last. */
const cohortSizeMax = 32

type Cohort = PromiseWithResolvers<void> & { size: number }

/**
 * Gathers the tasks that come to one step of their work in one turn of the event loop. They go on together at
 * its end, and take each further step one after the other (cohort scheduling), so that the code of a step is
 * more likely to be in the caches of the processor.
 *
 * The result joins a cohort; its promise is shared. A full cohort is followed by another one in the next turn.
 */
export function createCohorts(sizeMax = cohortSizeMax): () => Promise<void> {
  const waiting: Cohort[] = []

  function release() {
    const cohort = waiting.shift()
    if (waiting.length > 0) setImmediate(release)
    cohort?.resolve()
  }

  return () => {
    let cohort = waiting.at(-1)
    if (cohort === undefined || cohort.size >= sizeMax) {
      cohort = { ...Promise.withResolvers<void>(), size: 0 }
      if (waiting.push(cohort) === 1) setImmediate(release)
    }
    cohort.size += 1
    return cohort.promise
  }
}
