import type { AvailableModel } from '#models/model-resolver.ts'
import { longContextMark } from '#models/names.ts'
import type { ModelInfo } from './description/model-info.ts'

/** From here on clients count on a window of a million tokens, where the name says so. */
const longContextTokens = 1_000_000

/**
 * A model as its entries of the list: a second one where its window is so long that clients want to
 * be told by the name, since some take every name that they do not know for a window of 200,000.
 */
export function modelInfos(model: AvailableModel): readonly [ModelInfo, ...ModelInfo[]] {
  const plain = renderEntry(model, { id: model.prefixedId, displayName: model.displayName })
  const isLong = (model.contextWindow ?? 0) >= longContextTokens
  if (!isLong || plain.id.endsWith(longContextMark)) return [plain]
  const id = model.prefixedId + longContextMark
  return [plain, renderEntry(model, { id, displayName: `${model.displayName} (1M context)` })]
}

/** Newest first; what nobody dates stands behind the rest, in the same order on every replica. */
export function newestFirst(models: readonly AvailableModel[]): readonly AvailableModel[] {
  const at = ({ isDated, created }: AvailableModel) => (isDated ? created : 0)
  return models.toSorted(
    (left, right) => at(right) - at(left) || (left.prefixedId < right.prefixedId ? -1 : 1),
  )
}

function renderEntry(model: AvailableModel, named: { id: string; displayName: string }): ModelInfo {
  return {
    type: 'model',
    id: named.id,
    display_name: named.displayName,
    created_at: new Date(model.isDated ? model.created * 1000 : 0).toISOString(),
    max_input_tokens: model.contextWindow,
    max_tokens: null,
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    line: null,
    capabilities: renderCapabilities(model.capabilities),
  }
}

/** Null where nobody says what the model can: a guess would be taken for the truth. */
function renderCapabilities(words: readonly string[]): ModelInfo['capabilities'] {
  if (words.length === 0) return null
  const has = (word: string) => ({ supported: words.includes(word) })
  const reasons = has('reasoning')
  return {
    batch: never,
    citations: never,
    code_execution: never,
    context_management: never,
    effort: { ...reasons, low: reasons, medium: reasons, high: reasons, xhigh: null, max: never },
    image_input: has('vision'),
    pdf_input: has('pdf'),
    server_tools: { ...never, code_execution: never, web_search: never },
    // Held by the gateway itself.
    structured_outputs: { supported: true },
    thinking: {
      ...reasons,
      types: { adaptive: reasons, between_tools: never, disabled: reasons, enabled: reasons },
    },
  }
}

const never = { supported: false }
