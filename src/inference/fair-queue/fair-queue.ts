import { createLru } from '#lib/lru.ts'
import { DrainRate } from './drain-rate.ts'
import { IndexedHeap } from './indexed-heap.ts'
import { Lane, Ticket } from './lane.ts'

/** From the first to the last to be served. */
const priorities = ['interactive', 'background', 'batch'] as const
export type Priority = (typeof priorities)[number]

/**
 * Of the tokens that are granted to calls of higher priority, the share that waiting calls of a
 * priority get as well, so that they do not starve.
 */
const guaranteedShares: readonly number[] = [0, 1 / 8, 1 / 32]

/** Lanes whose drain rate is remembered after they emptied. */
const drainRatesMax = 1_000

export type QueueLimits = {
  /** Waiting calls of one model and priority. */
  readonly waitingMax: number
  /** Of these, calls of one principal. */
  readonly waitingPerPrincipalMax: number
}

export type QueuedCall = {
  readonly model: string
  /** The names of the upstreams that may serve it. */
  readonly upstreams: readonly string[]
  readonly principal: string
  readonly priority: Priority
  readonly costTokens: number
  readonly deadlineMs: number
  /** Whether it is exempt from the limits. */
  readonly isRetry?: boolean
}

/** Why a call may not wait, and when its queue will have drained. */
export type QueueRefusal = {
  readonly reason: 'queue_full' | 'principal_full'
  readonly drainMs: number
}

/** The state of one upstream while calls wait for it. */
type Contended = {
  /** By rank: tokens that lower priorities may take before higher ones. */
  readonly creditTokens: number[]
  /** By rank: the virtual tokens of the lane that was granted last. */
  readonly rounds: number[]
  /** By key of the lane. */
  readonly virtualTokens: Map<string, number>
}

/**
 * Calls that wait for a free slot of an upstream, and which of them is next: the one of the highest
 * priority, of the model with the fewest granted tokens per principal, and of its principal with the
 * fewest. Pure: time is a parameter.
 */
export class FairQueue<Call> {
  readonly #limits: QueueLimits
  readonly #lanes = new Map<string, Lane<Call>>()
  readonly #contended = new Map<string, Contended>()
  readonly #drainRates = createLru<string, DrainRate>(drainRatesMax)
  readonly #deadlines = new IndexedHeap<Ticket<Call>>(
    (left, right) => left.deadlineMs < right.deadlineMs,
  )

  constructor(limits: QueueLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#deadlines.size
  }

  /** Lanes with waiting calls. */
  lanes(): Iterable<Lane<Call>> {
    return this.#lanes.values()
  }

  /** `unknownMs`: the time per call to assume where no call was granted yet. */
  add(
    call: Call,
    queued: QueuedCall,
    nowMs: number,
    unknownMs: number,
  ): Ticket<Call> | QueueRefusal {
    const lane = this.#laneOf(queued)
    const refusal = queued.isRetry === true ? null : this.#refusalOf(lane, queued.principal)
    if (refusal !== null) {
      const { reason, ahead } = refusal
      return { reason, drainMs: lane.drain.drainMs(ahead, nowMs, unknownMs) }
    }
    if (lane.waiting === 0) {
      this.#lanes.set(lane.key, lane)
      lane.drain.begin(nowMs)
    }
    const ticket = new Ticket(call, {
      lane,
      flow: lane.flowOf(queued.principal),
      costTokens: Math.max(1, queued.costTokens),
      sinceMs: nowMs,
      deadlineMs: queued.deadlineMs,
    })
    lane.add(ticket)
    this.#deadlines.add(ticket)
    return ticket
  }

  #refusalOf(lane: Lane<Call>, principal: string) {
    const { waitingMax, waitingPerPrincipalMax } = this.#limits
    const free = waitingMax - lane.waiting
    const own = lane.waitingOf(principal)
    if (free <= 0 && own < waitingPerPrincipalMax) {
      return { reason: 'queue_full', ahead: lane.waiting } as const
    }
    // Nobody holds more places than are free: the queue never fills with the calls of a few.
    if (own < Math.min(waitingPerPrincipalMax, free)) return null
    return {
      reason: 'principal_full',
      ahead: Math.min(lane.waiting, own * lane.principals),
    } as const
  }

  /**
   * Grants the next call that this upstream may serve and that `take` accepts. Calls of one lane are
   * alike: after a refusal, those of other lanes are asked.
   */
  grant(upstream: string, nowMs: number, take: (call: Call) => boolean): Ticket<Call> | null {
    const refused = new Set<Lane<Call>>()
    for (;;) {
      const best = this.#candidates(upstream, refused)
      const ticket = this.#choose(upstream, best)
      if (ticket === null) {
        if (refused.size === 0) this.#contended.delete(upstream)
        return null
      }
      if (take(ticket.call)) {
        this.#charge(upstream, best, ticket)
        ticket.lane.grant(ticket)
        ticket.lane.drain.granted(nowMs)
        this.#ended(ticket, 'granted')
        return ticket
      }
      refused.add(ticket.lane)
    }
  }

  /** The client disconnected, or its deadline has passed. */
  remove(ticket: Ticket<Call>) {
    if (ticket.state !== 'waiting') return
    ticket.lane.remove(ticket)
    this.#ended(ticket, 'removed')
  }

  /** Removes a call whose deadline has passed. */
  expire(nowMs: number): Ticket<Call> | null {
    const ticket = this.#deadlines.first
    if (ticket === undefined || ticket.deadlineMs > nowMs) return null
    this.remove(ticket)
    return ticket
  }

  nextDeadlineMs(): number | null {
    return this.#deadlines.first?.deadlineMs ?? null
  }

  /** Charges what a granted call really cost, as long as others of its lane wait. */
  settle({ lane, flow, costTokens }: Ticket<Call>, realTokens: number) {
    if (this.#lanes.get(lane.key) === lane) lane.correct(flow, realTokens - costTokens)
  }

  #laneOf({ model, upstreams, priority }: QueuedCall): Lane<Call> {
    const key = `${priority}\0${model}\0${upstreams.join('\0')}`
    return (
      this.#lanes.get(key) ??
      new Lane({
        key,
        model,
        rank: priorities.indexOf(priority),
        upstreams,
        drain: this.#drainRateOf(key),
      })
    )
  }

  #drainRateOf(key: string): DrainRate {
    const known = this.#drainRates.get(key) ?? new DrainRate()
    this.#drainRates.set(key, known)
    return known
  }

  /** By rank: the lane that is next at this upstream. */
  #candidates(upstream: string, refused: ReadonlySet<Lane<Call>>): (Lane<Call> | null)[] {
    const contended = this.#contended.get(upstream)
    const best: (Lane<Call> | null)[] = priorities.map(() => null)
    const startOf = ({ key, rank }: Lane<Call>) =>
      Math.max(contended?.virtualTokens.get(key) ?? 0, contended?.rounds[rank] ?? 0)
    for (const lane of this.#lanes.values()) {
      if (!lane.upstreams.includes(upstream) || refused.has(lane)) continue
      const other = best[lane.rank] ?? null
      if (other === null || startOf(lane) < startOf(other)) best[lane.rank] = lane
    }
    return best
  }

  /** The highest priority, unless a lower one has been granted less than its share. */
  #choose(upstream: string, best: readonly (Lane<Call> | null)[]): Ticket<Call> | null {
    const credits = this.#contended.get(upstream)?.creditTokens
    let chosen: Ticket<Call> | null = null
    for (const [rank, lane] of best.entries()) {
      const ticket = lane?.next() ?? null
      if (ticket === null) continue
      if (chosen === null) chosen = ticket
      else if ((credits?.[rank] ?? 0) >= ticket.costTokens) return ticket
    }
    return chosen
  }

  #charge(upstream: string, best: readonly (Lane<Call> | null)[], ticket: Ticket<Call>) {
    const { lane, costTokens } = ticket
    const { creditTokens, rounds, virtualTokens } = this.#contendedOf(upstream)
    const start = Math.max(virtualTokens.get(lane.key) ?? 0, rounds[lane.rank] ?? 0)
    rounds[lane.rank] = start
    virtualTokens.set(lane.key, start + costTokens / lane.principals)
    for (const [rank, waiting] of best.entries()) {
      const credit = creditTokens[rank] ?? 0
      if (waiting === null) creditTokens[rank] = 0
      else if (rank === lane.rank) creditTokens[rank] = Math.max(0, credit - costTokens)
      else if (rank > lane.rank) {
        creditTokens[rank] = credit + costTokens * (guaranteedShares[rank] ?? 0)
      }
    }
  }

  #contendedOf(upstream: string): Contended {
    const known = this.#contended.get(upstream)
    if (known !== undefined) return known
    const created: Contended = {
      creditTokens: priorities.map(() => 0),
      rounds: priorities.map(() => 0),
      virtualTokens: new Map(),
    }
    this.#contended.set(upstream, created)
    return created
  }

  #ended(ticket: Ticket<Call>, state: 'granted' | 'removed') {
    ticket.state = state
    this.#deadlines.remove(ticket)
    if (ticket.lane.waiting === 0) this.#lanes.delete(ticket.lane.key)
    if (this.#lanes.size === 0) this.#contended.clear()
  }
}
