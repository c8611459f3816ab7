import type { Config } from '#config/schema.ts'
import { tooManyFiles, tooManyFilesOfCaller } from './failures.ts'

/** Counts what is going on, for the whole process and for each caller. */
export type Admission = {
  /** Throws where there is no room; the result gives the room back, once. */
  enter(userId: string): () => void
  running(): number
}

export function createAdmission(
  limits: Pick<Config['speech'], 'sessionsMax' | 'sessionsPerUserMax'>,
): Admission {
  const { sessionsMax, sessionsPerUserMax } = limits
  const runningOf = new Map<string, number>()
  let running = 0

  return {
    enter(userId) {
      const ofCaller = runningOf.get(userId) ?? 0
      if (ofCaller >= sessionsPerUserMax) throw tooManyFilesOfCaller(sessionsPerUserMax)
      if (running >= sessionsMax) throw tooManyFiles()
      running += 1
      runningOf.set(userId, ofCaller + 1)
      let hasLeft = false
      return () => {
        if (hasLeft) return
        hasLeft = true
        running -= 1
        const rest = (runningOf.get(userId) ?? 1) - 1
        if (rest === 0) runningOf.delete(userId)
        else runningOf.set(userId, rest)
      }
    },
    running: () => running,
  }
}
