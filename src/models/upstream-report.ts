import type { Router } from '#inference/routing/router.ts'
import type { UpstreamState } from '#inference/routing/state.ts'
import type { Catalogue } from './catalogue.ts'
import type { Drains } from './drains.ts'
import { renderUpstream, type UpstreamRecord } from './upstream-record.ts'

export type UpstreamReportDeps = {
  readonly router: Router
  readonly catalogue: Catalogue
  readonly drains: Drains
  readonly now: () => Date
}

/** What this worker knows about its upstreams, as records. */
export function createUpstreamReport({ router, catalogue, drains, now }: UpstreamReportDeps) {
  const of = (upstream: UpstreamState): UpstreamRecord =>
    renderUpstream(upstream, drains.of(upstream.upstream.name), {
      nowMs: router.nowMs(),
      now: now(),
    })
  return {
    of,
    all(): UpstreamRecord[] {
      // Also models without requests so far.
      for (const target of catalogue.targets()) router.stateOf(target)
      return [...router.upstreams()].map(of)
    },
  }
}
