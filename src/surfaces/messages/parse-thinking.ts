import type { ReasoningItem } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'
import type { ReasoningSeal } from '#sealing/reasoning.ts'
import { createReader } from './read-object.ts'
import { redactedThinkingBlock, thinkingBlock } from './schema.ts'

const readThinking = createReader(thinkingBlock)
const readRedacted = createReader(redactedThinkingBlock)

/**
 * What a model thought before, where it can be given back: what we sealed, and text that nobody
 * signed. What another service signed means nothing to anybody else, and a signature that was altered
 * fails no request, so both are left out (null); a native upstream gets such blocks as they came.
 */
export function parseThinking(
  block: unknown,
  path: string,
  seal: ReasoningSeal,
): ReasoningItem | null {
  const { thinking, signature = '' } = readThinking(block, path)
  if (signature !== '') return openThinking(signature, thinking, seal)
  return thinking === '' ? null : { type: 'reasoning', summary: [], text: thinking }
}

/** The same of a block whose thinking is for its maker alone. */
export function parseRedactedThinking(
  block: unknown,
  path: string,
  seal: ReasoningSeal,
): ReasoningItem | null {
  return openThinking(readRedacted(block, path).data, '', seal)
}

function openThinking(sealed: string, shown: string, seal: ReasoningSeal): ReasoningItem | null {
  const opened = openIfOurs(sealed, seal)
  if (opened === null) return null
  const { text, payload, maker } = opened
  if (text === '' && shown === '' && payload === null) return null
  return {
    type: 'reasoning',
    summary: text === '' && shown !== '' ? [shown] : [],
    text,
    ...(payload === null ? {} : { sealed: payload }),
    ...(maker === null ? {} : { sealedBy: maker }),
  }
}

function openIfOurs(sealed: string, seal: ReasoningSeal) {
  try {
    return seal.open(sealed)
  } catch (error) {
    if (error instanceof AppError && error.kind === 'invalid_encrypted_content') return null
    throw error
  }
}
