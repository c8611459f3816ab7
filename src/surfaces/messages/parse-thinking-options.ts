import type { GenerationRequest } from '#inference/request.ts'
import type { JsonObject } from '#lib/json.ts'
import type { ThinkingDisplay } from './blocks/block.ts'
import { badField, createReader, readType } from './read-object.ts'
import { thinkingFields } from './schema.ts'

const readFields = createReader(thinkingFields)

export type ParsedThinkingOptions = {
  reasoning: GenerationRequest['reasoning']
  display: ThinkingDisplay
}

/** Upstreams know levels of effort and no budget: up to how many tokens which level is meant. */
const lowBudgetTokensMax = 8_191
const mediumBudgetTokensMax = 24_575

/**
 * `thinking` of a request; an effort that the caller names (`output_config.effort`) goes before one
 * that follows from a budget. `afterTools`: the turn goes on behind results of tools.
 */
export function parseThinkingOptions(
  value: JsonObject | undefined,
  { effort, afterTools }: { effort: string | null; afterTools: boolean },
): ParsedThinkingOptions {
  if (value === undefined) return { reasoning: { effort, summary: null }, display: 'summarized' }
  const { budget_tokens: budgetTokens, display: wanted } = readFields(value, 'thinking')
  const display = wanted === 'omitted' ? 'omitted' : 'summarized'
  const summary = display === 'omitted' ? null : 'auto'
  const type = readType(value, 'thinking')
  switch (type) {
    case 'enabled': {
      if (budgetTokens === undefined) throw badField('thinking.budget_tokens', 'is required')
      const level = effort ?? effortOf(budgetTokens)
      return { reasoning: { effort: level, summary, budgetTokens }, display }
    }
    case 'adaptive':
      return { reasoning: { effort, summary }, display }
    case 'disabled':
      return { reasoning: { effort: 'none', summary: null }, display }
    case 'between_tools':
      return {
        reasoning: afterTools ? { effort, summary } : { effort: 'none', summary: null },
        display,
      }
    default:
      throw badField('thinking.type', 'must be one of enabled, adaptive, disabled, between_tools')
  }
}

function effortOf(budgetTokens: number): string {
  if (budgetTokens <= lowBudgetTokensMax) return 'low'
  return budgetTokens <= mediumBudgetTokensMax ? 'medium' : 'high'
}
