import { runGeneration } from '#surfaces/run-generation.ts'
import type { Caller, Plan, Turn, TurnDeps } from './turn.ts'

/** A response that is stored nowhere: it lives and ends with its connection. */
export function runDirectly(deps: Pick<TurnDeps, 'log'>, plan: Plan, caller: Caller): Turn {
  const { generate, renderer } = plan
  const { requestId, signal } = caller
  return {
    ...runGeneration({ generate, renderer, signal, requestId, log: deps.log }),
    id: plan.head.id,
    streams: plan.parsed.stream || caller.memory !== undefined,
    context: () => [...plan.history.items, ...plan.head.input, ...renderer.stored().output],
  }
}
