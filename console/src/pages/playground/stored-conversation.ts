import type { Answer, Usage } from './answer.ts'
import { newAnswer } from './answer.ts'
import type { Turn } from './request.ts'
import { defaultSettings, type Settings } from './settings.ts'

/** The conversation of this tab, so that a reload loses nothing. Attachments are not kept. */
const storageKey = 'sluice.playground'

type StoredAnswer = Pick<
  Answer,
  'surface' | 'model' | 'responseId' | 'parts' | 'blocks' | 'status' | 'why' | 'error' | 'request'
> & {
  readonly usage: Usage | null
  readonly firstMs: number | null
  readonly totalMs: number | null
}

type Stored = {
  readonly settings: Settings
  readonly turns: readonly (Omit<Turn, 'answer'> & { readonly answer: StoredAnswer })[]
}

export function saveConversation(settings: Settings, turns: readonly Turn[]): void {
  const stored: Stored = {
    settings,
    turns: turns.map(({ id, question, answer }) => ({
      id,
      question: { ...question, attachments: [] },
      answer: {
        surface: answer.surface,
        model: answer.model,
        responseId: answer.responseId,
        parts: answer.parts,
        blocks: answer.blocks,
        status: answer.status,
        why: answer.why,
        error: answer.error,
        request: question.attachments.length === 0 ? answer.request : {},
        usage: answer.usage,
        firstMs: answer.firstAt === null ? null : answer.firstAt - answer.sentAt,
        totalMs: answer.endedAt === null ? null : answer.endedAt - answer.sentAt,
      },
    })),
  }
  try {
    sessionStorage.setItem(storageKey, JSON.stringify(stored))
  } catch {
    // The quota of the browser: the conversation goes on, and a reload starts with an older state.
  }
}

export function loadConversation(): { settings: Settings; turns: Turn[] } {
  try {
    const text = sessionStorage.getItem(storageKey)
    if (text === null) return { settings: defaultSettings, turns: [] }
    const stored = JSON.parse(text) as Stored
    return {
      settings: { ...defaultSettings, ...stored.settings },
      turns: stored.turns.map(({ answer, ...turn }) => ({ ...turn, answer: restore(answer) })),
    }
  } catch {
    return { settings: defaultSettings, turns: [] }
  }
}

function restore({ firstMs, totalMs, ...stored }: StoredAnswer): Answer {
  const sentAt = 0
  return {
    ...newAnswer(stored),
    ...stored,
    sentAt,
    firstAt: firstMs === null ? null : sentAt + firstMs,
    endedAt: totalMs === null ? null : sentAt + totalMs,
  }
}
