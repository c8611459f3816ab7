import type { GenerationRequest, ToolChoice } from '#inference/request.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { isThinking } from './turns.ts'
import type { WireMessage, WireThinking } from './wire.ts'

type Situation = {
  quirks: UpstreamQuirks
  /** Thoughts count as output. */
  maxTokens: number
  messages: readonly WireMessage[]
}

/** The fewest thinking tokens that the protocol takes. */
const budgetTokensMin = 1_024
/** What is left for the answer itself, at least. */
const answerTokensMin = 1_024

/** How many tokens an effort stands for, where an upstream counts in those. */
const budgets: Readonly<Record<string, number>> = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768,
}

/** How an upstream is asked to think; nulls: not at all, its own default holds. */
export function encodeThought(
  request: Pick<GenerationRequest, 'reasoning' | 'toolChoice'>,
  { quirks, maxTokens, messages }: Situation,
): { thinking: WireThinking | null; effort: string | null } {
  const { effort, summary, budgetTokens } = request.reasoning
  const isAsked = effort !== null || budgetTokens !== undefined || summary !== null
  if (quirks.thinking === 'none' || !isAsked) return { thinking: null, effort: null }
  if (effort === 'none') return { thinking: { type: 'disabled' }, effort: null }
  const isForced = forcesCall(request.toolChoice)
  if (quirks.thinking === 'adaptive') {
    const display = summary === null ? {} : { display: 'summarized' as const }
    return {
      thinking: isForced ? null : { type: 'adaptive', ...display },
      effort: effort === 'minimal' ? 'low' : effort,
    }
  }
  const wanted = budgetTokens ?? budgets[effort ?? '']
  if (wanted === undefined || isForced || isInsideUnthoughtTurn(messages)) {
    return { thinking: null, effort: null }
  }
  const tokens = Math.min(Math.max(wanted, budgetTokensMin), maxTokens - answerTokensMin)
  return {
    thinking: tokens < budgetTokensMin ? null : { type: 'enabled', budget_tokens: tokens },
    effort: null,
  }
}

/** A model that must call a tool cannot be asked to think first. */
function forcesCall(choice: ToolChoice): boolean {
  if (choice.type === 'allowed') return choice.mode === 'required'
  return choice.type === 'required' || choice.type === 'tool'
}

/**
 * Whether the model goes on with a turn that it began without thinking, or whose thoughts it cannot
 * be given back; servers refuse to think from its middle on.
 */
function isInsideUnthoughtTurn(messages: readonly WireMessage[]): boolean {
  const last = messages.at(-1)
  const hasResults = last?.role === 'user' && last.content[0]?.type === 'tool_result'
  const asking = hasResults ? messages.findLast(({ role }) => role === 'assistant') : undefined
  if (asking?.role !== 'assistant') return false
  const [first] = asking.content
  return first === undefined || !isThinking(first)
}
