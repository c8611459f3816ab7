import type { EventBatch, Usage } from '#inference/events.ts'
import { addUsage } from '#inference/events.ts'
import type { GenerationRequest, ToolChoice } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'

/** The usage of all turns of one response, and its limits. */
export type Budget = {
  /** Adds the usage of a turn. */
  addUsage(usage: Usage | null): void
  /** null if no turn reported usage. */
  usage(): Usage | null
  /** Throws beyond the text limit of a response. */
  addText(batch: EventBatch): void
  /** The rest of `max_output_tokens`; null: no limit. */
  outputTokensLeft(): number | null
}

export function createBudget(request: GenerationRequest, outputCharsMax: number): Budget {
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
          `The response with its tool calls is longer than the limit of ${outputCharsMax} characters.`,
        )
      }
    },
    outputTokensLeft: () =>
      maxOutputTokens === null ? null : maxOutputTokens - (total?.outputTokens ?? 0),
  }
}

/** After the first turn no call is required: otherwise the model could never respond. */
export function withoutRequirement(choice: ToolChoice): ToolChoice {
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

/** Allowing no tool at all equals `none`. */
export function normaliseChoice(choice: ToolChoice): ToolChoice {
  return choice.type === 'allowed' && choice.tools.length === 0 ? { type: 'none' } : choice
}

/** Starts tasks in order with limited concurrency; returns a promise per task. */
export function runConcurrently<T>(
  tasks: readonly (() => Promise<T>)[],
  concurrencyMax: number,
): readonly Promise<T>[] {
  const entries = tasks.map((task) => ({ task, ...Promise.withResolvers<T>() }))
  const queue = entries.values()
  const work = async () => {
    for (const { task, resolve, reject } of queue) await task().then(resolve, reject)
  }
  for (let running = 0; running < concurrencyMax; running++) void work()
  return entries.map(({ promise }) => {
    // The caller may stop at the first rejection, so others are handled.
    promise.catch(() => {})
    return promise
  })
}
