import type { FinishReason } from '#inference/events.ts'

/** Why a message ended, as its last events tell it. */
export type Ending = { reason: FinishReason; rawReason: string; stopSequence?: string }

const reasons: Readonly<Record<string, FinishReason>> = {
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  stop_sequence: 'stop-sequence',
  refusal: 'content-filter',
}

/**
 * A word that is not known ends a message properly, as `end_turn` and `pause_turn` do. Calls count
 * for more than such a word: some servers say that they just stopped.
 */
export function readEnding(word: string, stopSequence: unknown, hasToolCalls: boolean): Ending {
  const reason = reasons[word] ?? (hasToolCalls ? 'tool-calls' : 'stop')
  if (reason !== 'stop-sequence' || typeof stopSequence !== 'string') {
    return { reason, rawReason: word }
  }
  return { reason, rawReason: word, stopSequence }
}

/** Whether the model was stopped in the middle of what it said. */
export function isCut({ reason }: Ending): boolean {
  return reason === 'length' || reason === 'content-filter'
}
