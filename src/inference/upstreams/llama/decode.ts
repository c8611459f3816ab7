import type { GenerationEvent, Usage } from '#inference/events.ts'
import { ToolCalls } from '#inference/tool-calls.ts'
import type { ToolNames } from '#inference/tools.ts'
import { AppError } from '#lib/errors.ts'
import type { Ending, Piece, TokenCounts } from './wire.ts'

/** Converts the pieces of a model process to events in the order of `events.ts`. */
export type LlamaDecoder = {
  read(piece: Piece, out: GenerationEvent[]): void
  finish(ending: FinishedEnding, out: GenerationEvent[]): void
}

type FinishedEnding = Extract<Ending, { type: 'finished' }>

type Open = { readonly type: Exclude<Piece['type'], 'call'>; readonly block: number }

export function createLlamaDecoder(options: {
  toolNames: ToolNames
  takenCallIds: ReadonlySet<string>
  toolArgumentCharsMax: number
}): LlamaDecoder {
  let open: Open | null = null
  let nextBlock = 0
  let lastCall = -1

  const close = (out: GenerationEvent[], complete: boolean) => {
    if (open === null) return
    const type = open.type === 'thought' ? 'reasoning-end' : 'text-end'
    out.push({ type, block: open.block, complete })
    open = null
  }
  const calls = new ToolCalls({
    head: options.toolNames.head,
    openBlock(out) {
      close(out, true)
      return nextBlock++
    },
    takenCallIds: options.takenCallIds,
    heldCharsMax: options.toolArgumentCharsMax,
  })
  const addText = (piece: Exclude<Piece, { type: 'call' }>, out: GenerationEvent[]) => {
    if (open?.type !== piece.type) {
      close(out, true)
      open = { type: piece.type, block: nextBlock++ }
      out.push(startOf(open))
    }
    const { block } = open
    out.push(
      piece.type === 'thought'
        ? { type: 'reasoning-delta', block, part: 0, text: piece.text }
        : { type: 'text-delta', block, text: piece.text },
    )
  }
  return {
    read(piece, out) {
      if (piece.type !== 'call') return addText(piece, out)
      const { call: index, text } = piece
      // A repeated name would begin another call.
      const name = index === lastCall ? '' : piece.name
      lastCall = index
      calls.push({ index, indexGiven: true, id: '', name, text }, out)
    },
    finish({ reason, tokens, stopSequence }, out) {
      const isCut = reason === 'length'
      close(out, !isCut)
      calls.close(out, isCut)
      out.push({
        type: 'finish',
        reason,
        rawReason: null,
        usage: usageOf(tokens),
        ...(stopSequence === undefined ? {} : { stopSequence }),
      })
    },
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
