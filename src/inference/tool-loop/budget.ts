import { addUsage, type EventBatch, type Usage } from '#inference/events.ts'
import type { GenerationRequest, ToolChoice } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'

/** The usage of all turns of one response, and its limits. */
export class Budget {
  /** null if no turn reported usage. */
  usage: Usage | null = null
  readonly #outputTokensMax: number | null
  readonly #outputCharsMax: number
  #charsLeft: number

  constructor({ sampling }: GenerationRequest, outputCharsMax: number) {
    this.#outputTokensMax = sampling.maxOutputTokens
    this.#outputCharsMax = outputCharsMax
    this.#charsLeft = outputCharsMax
  }

  /** The rest of `max_output_tokens`; null: no limit. */
  get outputTokensLeft(): number | null {
    if (this.#outputTokensMax === null) return null
    return this.#outputTokensMax - (this.usage?.outputTokens ?? 0)
  }

  /** Adds the usage of a turn. */
  addUsage(usage: Usage | null) {
    this.usage = addUsage(this.usage, usage)
  }

  /** Throws beyond the text limit of a response. */
  addText(batch: EventBatch) {
    for (const event of batch) {
      if ('text' in event) this.#charsLeft -= event.text.length
      if (event.type === 'hosted-tool-end') this.#charsLeft -= JSON.stringify(event.item).length
    }
    if (this.#charsLeft >= 0) return
    throw new AppError(
      'upstream_invalid_answer',
      `The response with its tool calls is longer than the limit of ${this.#outputCharsMax} characters.`,
    )
  }
}

/** After the first turn no call is required: otherwise the model could never respond. */
export function withoutRequirement(choice: ToolChoice): ToolChoice {
  switch (choice.type) {
    case 'required':
    case 'tool':
    case 'native':
      return { type: 'auto' }
    case 'allowed':
      return { ...choice, mode: 'auto' }
    default:
      return choice
  }
}

/** Allowing no tool at all equals `none`. */
export function normaliseChoice(choice: ToolChoice): ToolChoice {
  const allowsNone =
    choice.type === 'allowed' && choice.tools.length === 0 && choice.native === undefined
  return allowsNone ? { type: 'none' } : choice
}

/** Starts work in order with limited concurrency; returns a promise per item. */
export function runConcurrently<T, R>(
  items: readonly T[],
  concurrencyMax: number,
  run: (item: T) => Promise<R>,
): readonly Promise<R>[] {
  const entries = items.map((item) => ({ item, ...Promise.withResolvers<R>() }))
  const queue = entries.values()
  const work = async () => {
    for (const { item, resolve, reject } of queue) await run(item).then(resolve, reject)
  }
  for (let running = 0; running < concurrencyMax; running++) void work()
  return entries.map(({ promise }) => {
    // The caller may stop at the first rejection, so others are handled.
    promise.catch(() => {})
    return promise
  })
}
