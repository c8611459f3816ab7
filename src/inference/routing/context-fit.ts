import type { ModelCall } from '#inference/inference.ts'
import { countableOf, estimateTokens } from '#inference/token-estimate.ts'
import type { Target } from '#inference/upstream.ts'

/**
 * The call with the targets whose context window holds its input; with those of the largest window if
 * none does. Only where windows differ is the input measured.
 */
export function withFittingTargets<Call extends ModelCall>(call: Call): Call {
  const { targets, request } = call
  if (request === undefined || !haveDifferentWindows(targets)) return call
  const windows = targets.map(windowOf)
  if (inputTokensMax(request) <= Math.min(...windows)) return call
  const neededTokens = Math.min(estimateTokens(request), Math.max(...windows))
  return { ...call, targets: targets.filter((target) => windowOf(target) >= neededTokens) }
}

/** The targets that may take an input which was too long for one of them. */
export function targetsWithLargerWindow(targets: readonly Target[], failed: Target): Target[] {
  return targets.filter((target) => {
    const { contextWindow = null, isFallback } = target
    if (contextWindow !== null) return contextWindow > (failed.contextWindow ?? 0)
    return isFallback === true && target.model !== failed.model
  })
}

function haveDifferentWindows(targets: readonly Target[]): boolean {
  const [first] = targets
  return first !== undefined && targets.some((target) => windowOf(target) !== windowOf(first))
}

function windowOf({ contextWindow }: Target): number {
  return contextWindow ?? Number.POSITIVE_INFINITY
}

/** Not less than the estimate, for a fraction of its time: no character is more than one token. */
function inputTokensMax(request: NonNullable<ModelCall['request']>): number {
  const { texts, templateTokens, opaqueTokens } = countableOf(request)
  return texts.reduce((tokens, { length }) => tokens + length, templateTokens + opaqueTokens)
}
