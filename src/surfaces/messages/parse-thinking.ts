import type { GenerationRequest, ReasoningItem } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import type { ReasoningSeal } from '#sealing/seals.ts'
import type { ThinkingDisplay } from './message.ts'
import { readObject, readType, unknownPart } from './read-object.ts'
import { redactedThinkingBlock, thinkingBlock } from './schema/input-blocks.ts'
import { budgetThinking, thinkingFields } from './schema/request.ts'

/**
 * Parses thinking that can be returned to a model: sealed by this gateway, or unsigned. A block that
 * another service signed, or whose signature was altered, is ignored (null); native upstreams get it
 * as sent.
 */
export function parseThinking(
  block: unknown,
  path: string,
  seal: ReasoningSeal,
): ReasoningItem | null {
  const { thinking, signature = '' } = readObject(thinkingBlock, block, path)
  if (signature !== '') return openThinking(signature, thinking, seal)
  return thinking === '' ? null : { type: 'reasoning', summary: [], text: thinking }
}

export function parseRedactedThinking(
  block: unknown,
  path: string,
  seal: ReasoningSeal,
): ReasoningItem | null {
  return openThinking(readObject(redactedThinkingBlock, block, path).data, '', seal)
}

function openThinking(sealed: string, shown: string, seal: ReasoningSeal): ReasoningItem | null {
  const opened = openOwn(sealed, seal)
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

/** Null if the seal was altered, or is not of this gateway. */
function openOwn(sealed: string, seal: ReasoningSeal) {
  try {
    return seal.open(sealed)
  } catch (error) {
    if (error instanceof AppError && error.kind === 'invalid_encrypted_content') return null
    throw error
  }
}

export type ParsedThinkingOptions = {
  reasoning: GenerationRequest['reasoning']
  display: ThinkingDisplay
}

export const defaultThinking: ParsedThinkingOptions = {
  reasoning: { effort: null, summary: null },
  display: 'summarized',
}

/** Upstreams know levels of effort instead of budgets: the largest budget of each level. */
const lowBudgetTokensMax = 8_191
const mediumBudgetTokensMax = 24_575

/**
 * Parses `thinking`. An explicit effort (`output_config.effort`) takes precedence over the level of a
 * budget. `afterTools`: the turn continues after tool results.
 */
export function parseThinkingOptions(
  value: JsonObject | undefined,
  { effort, afterTools }: { effort: string | null; afterTools: boolean },
): ParsedThinkingOptions {
  if (value === undefined) return { reasoning: { effort, summary: null }, display: 'summarized' }
  const { display: requested } = readObject(thinkingFields, value, 'thinking')
  const display = requested === 'omitted' ? 'omitted' : 'summarized'
  const summary = display === 'omitted' ? null : 'auto'
  const off = { effort: 'none', summary: null }
  switch (readType(value, 'thinking')) {
    case 'enabled': {
      const { budget_tokens: budgetTokens } = readObject(budgetThinking, value, 'thinking')
      const level = effort ?? effortOf(budgetTokens)
      return { reasoning: { effort: level, summary, budgetTokens }, display }
    }
    case 'adaptive':
      return { reasoning: { effort, summary }, display }
    case 'disabled':
      return { reasoning: off, display }
    case 'between_tools':
      return { reasoning: afterTools ? { effort, summary } : off, display }
    default:
      throw unknownPart(
        'thinking.type',
        'must be one of enabled, adaptive, disabled, between_tools',
      )
  }
}

function effortOf(budgetTokens: number): string {
  if (budgetTokens <= lowBudgetTokensMax) return 'low'
  return budgetTokens <= mediumBudgetTokensMax ? 'medium' : 'high'
}
