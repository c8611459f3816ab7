import { AsyncLocalStorage } from 'node:async_hooks'
import type { TraceContext } from './trace.ts'

/**
 * The trace that the current work belongs to, for what is far from its request: jobs are added deep in
 * transactions of features that know no requests. Everything else gets its trace with its context.
 */
const scope = new AsyncLocalStorage<TraceContext>()

export function runInTrace<T>(trace: TraceContext, work: () => T): T {
  return scope.run(trace, work)
}

export function currentTrace(): TraceContext | null {
  return scope.getStore() ?? null
}
