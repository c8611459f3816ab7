import type { Upstream } from '#inference/upstream.ts'
import type { HealthSettings } from './settings.ts'
import { type OnHealthChange, UpstreamState } from './state.ts'

type StateDeps = {
  readonly settings: HealthSettings
  readonly nowMs: () => number
  readonly maxInFlightOf: (upstream: string) => number
  readonly onHealthChange: OnHealthChange
}

/** The states of the configured upstreams, and of removed ones while requests run there. */
export function createUpstreamStates(deps: StateDeps) {
  let maxInFlightOf = deps.maxInFlightOf
  const current = new Map<string, UpstreamState>()
  /** Removed and replaced ones; empty most of the time. */
  const former = new Set<UpstreamState>()
  /** By earlier definition, which calls that began before a reload still have. */
  const byDefinition = new WeakMap<Upstream, UpstreamState>()
  let drained: ReadonlySet<string> = new Set()

  const create = (upstream: Upstream): UpstreamState => {
    const { settings, onHealthChange } = deps
    const maxInFlight = maxInFlightOf(upstream.name)
    const nowMs = deps.nowMs()
    const state = new UpstreamState(upstream, { maxInFlight, settings, nowMs, onHealthChange })
    state.isDraining = drained.has(upstream.name)
    return state
  }

  /** The state of a definition that was in use before. */
  const known = (upstream: Upstream): UpstreamState | undefined => {
    let state = byDefinition.get(upstream)
    while (state?.successor != null) state = state.successor
    return state
  }

  /** Keeps what was learned about a server, whatever else of its definition has changed. */
  const adopt = (upstream: Upstream): UpstreamState => {
    const { name } = upstream
    const before = current.get(name)
    const same = [before, ...former].find(
      (state) =>
        state !== undefined && state.upstream.name === name && isSameServer(state, upstream),
    )
    const state = same ?? create(upstream)
    byDefinition.set(state.upstream, state)
    state.upstream = upstream
    state.maxInFlight = maxInFlightOf(name)
    state.isRemoved = false
    state.isDraining = drained.has(name)
    state.successor = null
    former.delete(state)
    if (before !== undefined && before !== state) succeed(before, state)
    return state
  }

  const retire = (state: UpstreamState) => {
    byDefinition.set(state.upstream, state)
    state.isDraining = true
    state.isRemoved = true
    // Waiting calls look for another upstream at once.
    state.maxInFlight = Number.POSITIVE_INFINITY
    former.add(state)
  }

  /** A protocol cannot take over the calls of another one. */
  const succeed = (before: UpstreamState, state: UpstreamState) => {
    retire(before)
    state.countFrom(before)
    if (before.upstream.kind === state.upstream.kind) before.successor = state
  }

  return {
    of(upstream: Upstream): UpstreamState {
      const state = current.get(upstream.name)
      if (state?.upstream === upstream) return state
      const found = known(upstream) ?? state
      if (found !== undefined) return found
      const created = create(upstream)
      current.set(upstream.name, created)
      return created
    },

    /** In the order of the configuration, then removed ones where requests still run. */
    *all(): Generator<UpstreamState> {
      yield* current.values()
      for (const state of former) {
        if (state.inFlight === 0) former.delete(state)
        else if (!current.has(state.upstream.name)) yield state
      }
    },

    /** Every one where requests may run. */
    *running(): Generator<UpstreamState> {
      yield* current.values()
      yield* former
    },

    /** Takes upstreams out of service, and all others into it. Returns those that changed. */
    drain(names: ReadonlySet<string>): readonly UpstreamState[] {
      drained = names
      const changed = [...current.values()].filter(
        ({ isDraining, upstream }) => isDraining !== names.has(upstream.name),
      )
      for (const state of changed) state.isDraining = !state.isDraining
      return changed
    },

    /** Changes to these definitions. Returns the states whose waiting calls are to be looked after. */
    configure(
      upstreams: readonly Upstream[],
      maxOf: StateDeps['maxInFlightOf'],
    ): readonly UpstreamState[] {
      maxInFlightOf = maxOf
      const states = upstreams.map(adopt)
      const removed = [...current.values()].filter(
        (state) => !states.includes(state) && !state.isRemoved,
      )
      for (const state of removed) retire(state)
      current.clear()
      for (const state of states) current.set(state.upstream.name, state)
      return [...states, ...former]
    },
  }
}

function isSameServer({ upstream }: UpstreamState, { kind, baseUrl }: Upstream): boolean {
  return upstream.kind === kind && upstream.baseUrl === baseUrl
}
