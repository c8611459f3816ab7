import type { GenerationEvent } from '#inference/events.ts'
import { assertNever } from '#lib/assert.ts'
import { AppError } from '#lib/errors.ts'
import type { BlockTally } from './blocks/block.ts'
import type { MessageEnd, StopReason } from './message.ts'

type Finish = Extract<GenerationEvent, { type: 'finish' }>

/** Words of upstreams for a context window that is full. */
const fullWindow: ReadonlySet<string> = new Set(['model_context_window_exceeded', 'model_length'])

/**
 * Why the message ends. An answer that has not the form that was demanded is a failure: the format
 * has no word for it, and any that it has would be untrue.
 */
export function readEnd(finish: Finish, tally: BlockTally): MessageEnd | AppError {
  switch (finish.reason) {
    case 'stop':
    case 'tool-calls':
      return endOfTurn(finish, tally)
    case 'stop-sequence':
      return { ...ended('stop_sequence'), stop_sequence: finish.stopSequence ?? null }
    case 'length':
      return ended(
        fullWindow.has(finish.rawReason ?? '') ? 'model_context_window_exceeded' : 'max_tokens',
      )
    case 'content-filter':
      return refusal('The content filter of the upstream ended the answer.')
    case 'invalid-output':
      return new AppError(
        'upstream_invalid_answer',
        'The answer of the model does not have the form that the request demands.',
      )
    default:
      return assertNever(finish.reason)
  }
}

/** Calls count for more than the word: many servers say that they just stopped. */
function endOfTurn({ rawReason }: Finish, tally: BlockTally): MessageEnd {
  if (tally.toolUses > 0) return ended('tool_use')
  if (tally.hasRefusal) return refusal(null)
  return ended(rawReason === 'pause_turn' ? 'pause_turn' : 'end_turn')
}

/** `explanation`: null where the message itself has one. */
function refusal(explanation: string | null): MessageEnd {
  return { ...ended('refusal'), stop_details: { type: 'refusal', category: null, explanation } }
}

function ended(reason: StopReason): MessageEnd {
  return { stop_reason: reason, stop_sequence: null, stop_details: null, container: null }
}
