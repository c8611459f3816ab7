import type { EventBatch, Usage } from '#inference/events.ts'
import { addUsage } from '#inference/events.ts'
import type { GenerationRequest, ToolChoice } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'

/** What all turns of one response have used together. */
export type Spending = {
  /** Counts a turn. */
  addUsage(usage: Usage | null): void
  /** Null where no turn told it. */
  usage(): Usage | null
  /** Throws once there is more text than one response may have. */
  addText(batch: EventBatch): void
  /** What is left of `max_output_tokens`; null: no limit. */
  outputTokensLeft(): number | null
}

export function createSpending(request: GenerationRequest, outputCharsMax: number): Spending {
  const { maxOutputTokens } = request.sampling
  let total: Usage | null = null
  let charsLeft = outputCharsMax
  return {
    addUsage(usage) {
      total = addUsage(total, usage)
    },
    usage: () => total,
    addText(batch) {
      for (const event of batch) {
        if ('text' in event) charsLeft -= event.text.length
        if (event.type === 'hosted-tool-end') charsLeft -= JSON.stringify(event.item).length
      }
      if (charsLeft < 0) {
        throw new AppError(
          'upstream_invalid_answer',
          `The answer with its tool calls is longer than ${outputCharsMax} characters, which is the limit.`,
        )
      }
    },
    outputTokensLeft: () =>
      maxOutputTokens === null ? null : maxOutputTokens - (total?.outputTokens ?? 0),
  }
}

/** What was demanded was done in the first turn; a demand that stays would never let it answer. */
export function withoutDemand(choice: ToolChoice): ToolChoice {
  switch (choice.type) {
    case 'required':
    case 'tool':
      return { type: 'auto' }
    case 'allowed':
      return { ...choice, mode: 'auto' }
    default:
      return choice
  }
}

/** A bound that holds no tool at all allows none. */
export function boundBy(choice: ToolChoice): ToolChoice {
  return choice.type === 'allowed' && choice.tools.length === 0 ? { type: 'none' } : choice
}
