import { jest } from 'bun:test'
import { createJournal } from '#responses/journal.ts'
import { joinSegments } from '#responses/log-segment.ts'
import type { ResponseStore } from '#responses/store.ts'
import type { LogSegment } from '#responses/stored.ts'
import { quietLog } from '#test/support/quiet-log.ts'

export const outageMaxMs = 10_000
export const stepMs = 100

/** The time until the condition holds. */
export async function advanceUntil(reached: () => boolean): Promise<number> {
  let passedMs = 0
  for (; !reached() && passedMs < 10 * outageMaxMs; passedMs += stepMs) {
    jest.advanceTimersByTime(stepMs)
    await new Promise((resolve) => setImmediate(resolve))
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  return passedMs
}

function createFrames() {
  const segments: LogSegment[] = []
  return {
    segments,
    get untakenChars() {
      return segments.reduce((chars, { frames }) => chars + frames.length, 0)
    },
    get isUrgent() {
      return this.untakenChars >= 1_000
    },
    take: () => joinSegments(segments.splice(0)),
  }
}

export function openEntries(count: number, write: ResponseStore['write']) {
  const store = { write } as ResponseStore
  const journal = createJournal({
    store,
    flushMs: stepMs,
    outageMaxMs,
    log: quietLog,
  })
  const outcomes: string[] = []
  const entries = Array.from({ length: count }, (_, at) => {
    const frames = createFrames()
    const entry = journal.open({
      id: `resp_${at}`,
      ownerId: 'ann',
      conversationId: null,
      opened: null,
      frames,
      onWritten() {},
      onFailed() {},
    })
    const append = (segment: LogSegment) => {
      frames.segments.push(segment)
      entry.writeSoon()
    }
    return { ...entry, append }
  })
  const end = (entry: (typeof entries)[number]) => {
    const object = { id: 'x', status: 'completed' as const, output: [] }
    void entry.end({ object, segment: null }).then((outcome) => outcomes.push(outcome))
  }
  return { journal, entries, outcomes, end }
}
