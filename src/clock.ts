/** Wall-clock time. Durations are taken from `performance.now()`. */
export type Clock = { now: () => Date }

export const clock: Clock = { now: () => new Date() }
