import type { GenerationEvent } from '#inference/events.ts'
import { assertNever } from '#lib/assert.ts'
import { AppError } from '#lib/errors.ts'
import type { BlockTally } from './blocks/block.ts'
import type { MessageEnd, StopReason } from './message.ts'

type Finish = Extract<GenerationEvent, { type: 'finish' }>

/** The reasons of upstreams for a full context window. */
const fullWindowReasons: ReadonlySet<string> = new Set([
  'model_context_window_exceeded',
  'model_length',
])

/** The end of the message. Invalid output is an error, because the format has no stop reason for it. */
export function renderEnd(finish: Finish, tally: BlockTally): MessageEnd | AppError {
  switch (finish.reason) {
    case 'stop':
    case 'tool-calls':
      return endOfTurn(finish, tally)
    case 'stop-sequence':
      return { ...ended('stop_sequence'), stop_sequence: finish.stopSequence ?? null }
    case 'length':
      return ended(
        fullWindowReasons.has(finish.rawReason ?? '')
          ? 'model_context_window_exceeded'
          : 'max_tokens',
      )
    case 'content-filter':
      return refusal('The content filter of the upstream ended the output.')
    case 'invalid-output':
      return new AppError(
        'upstream_invalid_answer',
        'The output of the model does not conform to the requested format.',
      )
    default:
      return assertNever(finish.reason)
  }
}

/** Tool calls take precedence over the reason, since many servers report a plain stop. */
function endOfTurn({ rawReason }: Finish, tally: BlockTally): MessageEnd {
  if (tally.toolUses > 0) return ended('tool_use')
  if (tally.hasRefusal) return refusal(null)
  return ended(rawReason === 'pause_turn' ? 'pause_turn' : 'end_turn')
}

/** `explanation`: null if the message contains one. */
function refusal(explanation: string | null): MessageEnd {
  return { ...ended('refusal'), stop_details: { type: 'refusal', category: null, explanation } }
}

function ended(reason: StopReason): MessageEnd {
  return { stop_reason: reason, stop_sequence: null, stop_details: null, container: null }
}
