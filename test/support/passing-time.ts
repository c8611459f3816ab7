const now = performance.now.bind(performance)
let passedMs = 0

/**
 * Lets time pass at once for all that compares `performance.now()`, as the deadlines of speech
 * sessions do. So a test needs no short deadline, which a busy machine would miss. Timers are
 * unaffected. `endPassedTime` must follow in `afterEach`.
 */
export function passTime(ms: number): void {
  passedMs += ms
  performance.now = () => now() + passedMs
}

export function endPassedTime(): void {
  passedMs = 0
  performance.now = now
}
