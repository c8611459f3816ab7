import type { GenerationEvent, Usage } from '#inference/events.ts'
import { ToolCalls } from '#inference/tool-calls.ts'
import type { ToolNames } from '#inference/tools.ts'
import { AppError } from '#lib/errors.ts'
import type { Ending, Piece, TokenCounts } from './wire.ts'

type TextPiece = Exclude<Piece, { type: 'call' }>

type Open = { readonly type: TextPiece['type']; readonly block: number }

/** Converts the pieces of a model process to events in the order of `events.ts`. */
export class LlamaDecoder {
  readonly #calls: ToolCalls
  #open: Open | null = null
  #nextBlock = 0
  #lastCall = -1

  constructor(options: {
    toolNames: ToolNames
    takenCallIds: ReadonlySet<string>
    toolArgumentCharsMax: number
  }) {
    this.#calls = new ToolCalls({
      head: options.toolNames.head,
      openBlock: (out) => {
        this.#close(out, true)
        return this.#nextBlock++
      },
      takenCallIds: options.takenCallIds,
      heldCharsMax: options.toolArgumentCharsMax,
    })
  }

  read(piece: Piece, out: GenerationEvent[]) {
    if (piece.type !== 'call') {
      this.#addText(piece, out)
      return
    }
    const { call: index, text } = piece
    // A repeated name would begin another call.
    const name = index === this.#lastCall ? '' : piece.name
    this.#lastCall = index
    this.#calls.push({ index, indexGiven: true, id: '', name, text }, out)
  }

  finish(
    { reason, tokens, stopSequence }: Extract<Ending, { type: 'finished' }>,
    out: GenerationEvent[],
  ) {
    const isCut = reason === 'length'
    this.#close(out, !isCut)
    this.#calls.close(out, isCut)
    out.push({
      type: 'finish',
      reason,
      rawReason: null,
      usage: usageOf(tokens),
      ...(stopSequence === undefined ? {} : { stopSequence }),
    })
  }

  #addText({ type, text }: TextPiece, out: GenerationEvent[]) {
    if (this.#open?.type !== type) {
      this.#close(out, true)
      this.#open = { type, block: this.#nextBlock++ }
      out.push(startOf(this.#open))
    }
    const { block } = this.#open
    out.push(
      type === 'thought'
        ? { type: 'reasoning-delta', block, part: 0, text }
        : { type: 'text-delta', block, text },
    )
  }

  #close(out: GenerationEvent[], complete: boolean) {
    if (this.#open === null) return
    const type = this.#open.type === 'thought' ? 'reasoning-end' : 'text-end'
    out.push({ type, block: this.#open.block, complete })
    this.#open = null
  }
}

function startOf({ type, block }: Open): GenerationEvent {
  switch (type) {
    case 'thought':
      return { type: 'reasoning-start', block }
    case 'comment':
      return { type: 'text-start', block, form: 'answer', phase: 'commentary' }
    case 'text':
      return { type: 'text-start', block, form: 'answer' }
  }
}

/** The error for an ending other than `finished`. */
export function failureOf(ending: Ending): AppError {
  if (ending.type === 'refused') {
    return ending.reason === 'overflow'
      ? new AppError('context_length_exceeded', ending.message)
      : new AppError('invalid_request', `The model does not accept this input: ${ending.message}`)
  }
  return new AppError('upstream_error', 'The model failed.', { cause: ending })
}

function usageOf({ input, cached, output, thinking }: TokenCounts): Usage {
  return {
    inputTokens: input,
    cachedTokens: cached,
    cacheWriteTokens: 0,
    outputTokens: output,
    reasoningTokens: thinking,
    totalTokens: input + output,
  }
}
