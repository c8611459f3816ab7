import type { SpeechSession } from './session.ts'

/** Sessions that are over, for clients that have lost the last of their frames. */
export type PastSessions = {
  add(session: SpeechSession): void
  find(id: string): SpeechSession | undefined
  /** Forgets those that have been kept long enough. */
  look(): void
  count(): number
  clear(): void
}

/** The oldest are forgotten first when there are more of them, or of characters in their frames. */
export function createPastSessions(limits: { countMax: number; charsMax: number }): PastSessions {
  const kept = new Map<string, { readonly session: SpeechSession; readonly chars: number }>()
  let totalChars = 0

  function forgetWhile(isTooMuch: (oldest: SpeechSession) => boolean): void {
    for (const [id, { chars, session }] of kept) {
      if (!isTooMuch(session)) return
      kept.delete(id)
      totalChars -= chars
    }
  }

  return {
    add(session) {
      const chars = session.keptChars()
      kept.set(session.id, { session, chars })
      totalChars += chars
      forgetWhile(() => kept.size > limits.countMax || totalChars > limits.charsMax)
    },
    find: (id) => kept.get(id)?.session,
    look: () => forgetWhile((oldest) => oldest.isExpired()),
    count: () => kept.size,
    clear: () => forgetWhile(() => true),
  }
}
