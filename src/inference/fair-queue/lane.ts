import type { DrainRate } from './drain-rate.ts'
import { type HeapItem, IndexedHeap } from './indexed-heap.ts'

/** The most principals without waiting calls whose use a lane remembers. */
const idleFlowsMax = 1_024
/** The weight of the latest call in the mean cost. */
const latestWeight = 1 / 16
/** Typical calls by which the round may be ahead of the principal with the fewest tokens. */
const leadMax = 2

/** The waiting calls of one principal in one lane, first come first served. */
export type Flow<Call> = HeapItem & {
  readonly principal: string
  /** The tokens granted to it, on the scale of the lane. The flow with the least is next. */
  virtualTokens: number
  /** Among equal flows, the one that waits longest is next. */
  turn: number
  first: Ticket<Call> | null
  last: Ticket<Call> | null
  waiting: number
}

/** A place in the queue. */
export class Ticket<Call> implements HeapItem {
  heapIndex = -1
  state: 'waiting' | 'granted' | 'removed' = 'waiting'
  /** Neighbours in the flow. */
  before: Ticket<Call> | null = null
  after: Ticket<Call> | null = null
  readonly call: Call
  readonly lane: Lane<Call>
  readonly flow: Flow<Call>
  readonly costTokens: number
  readonly sinceMs: number
  readonly deadlineMs: number

  constructor(
    call: Call,
    at: {
      readonly lane: Lane<Call>
      readonly flow: Flow<Call>
      readonly costTokens: number
      readonly sinceMs: number
      readonly deadlineMs: number
    },
  ) {
    this.call = call
    this.lane = at.lane
    this.flow = at.flow
    this.costTokens = at.costTokens
    this.sinceMs = at.sinceMs
    this.deadlineMs = at.deadlineMs
  }
}

/**
 * The calls of one model and priority that wait: deficit round robin over principals with a quantum of
 * one token. A principal that was granted n tokens is due again n rounds later; the heap skips the rounds
 * in which nobody is due. Rounds pass as fast as tokens are granted per waiting principal. A principal
 * that comes back is not owed what it did not use; one that used more than its share owes it as long as
 * others wait.
 */
export class Lane<Call> {
  readonly key: string
  readonly model: string
  /** Index of its priority; 0 is the first. */
  readonly rank: number
  readonly upstreams: readonly string[]
  readonly drain: DrainRate
  readonly #flows = new Map<string, Flow<Call>>()
  readonly #due = new IndexedHeap<Flow<Call>>((left, right) =>
    left.virtualTokens === right.virtualTokens
      ? left.turn < right.turn
      : left.virtualTokens < right.virtualTokens,
  )
  #round = 0
  /** The mean cost of a call. A principal that owes nothing is due at once, this much before the round. */
  #typicalTokens = 0
  #turns = 0
  waiting = 0

  constructor(given: Pick<Lane<Call>, 'key' | 'model' | 'rank' | 'upstreams' | 'drain'>) {
    this.key = given.key
    this.model = given.model
    this.rank = given.rank
    this.upstreams = given.upstreams
    this.drain = given.drain
  }

  /** Principals with waiting calls. */
  get principals(): number {
    return this.#due.size
  }

  waitingOf(principal: string): number {
    return this.#flows.get(principal)?.waiting ?? 0
  }

  flowOf(principal: string): Flow<Call> {
    const known = this.#flows.get(principal)
    if (known !== undefined) return known
    if (this.#flows.size - this.#due.size >= idleFlowsMax) this.#forgetIdle()
    const flow: Flow<Call> = {
      principal,
      heapIndex: -1,
      virtualTokens: Number.NEGATIVE_INFINITY,
      turn: 0,
      first: null,
      last: null,
      waiting: 0,
    }
    this.#flows.set(principal, flow)
    return flow
  }

  add(ticket: Ticket<Call>) {
    const { flow } = ticket
    ticket.before = flow.last
    if (flow.last === null) flow.first = ticket
    else flow.last.after = ticket
    flow.last = ticket
    this.waiting++
    if (flow.waiting++ > 0) return
    if (this.#typicalTokens === 0) this.#typicalTokens = ticket.costTokens
    flow.virtualTokens = Math.max(flow.virtualTokens, this.#dueAtOnce())
    flow.turn = this.#turns++
    this.#due.add(flow)
  }

  /** The call that is next; it stays until `grant`. */
  next(): Ticket<Call> | null {
    return this.#due.first?.first ?? null
  }

  grant(ticket: Ticket<Call>) {
    const { flow, costTokens } = ticket
    const round = Math.max(this.#round + costTokens / this.principals, flow.virtualTokens)
    this.#typicalTokens += (costTokens - this.#typicalTokens) * latestWeight
    flow.virtualTokens += costTokens
    flow.turn = this.#turns++
    this.remove(ticket)
    if (flow.waiting > 0) this.#due.update(flow)
    const least = this.#due.first?.virtualTokens ?? round
    this.#round = Math.min(round, least + leadMax * this.#typicalTokens)
  }

  #dueAtOnce(): number {
    return this.#round - this.#typicalTokens
  }

  remove(ticket: Ticket<Call>) {
    const { flow, before, after } = ticket
    if (before === null) flow.first = after
    else before.after = after
    if (after === null) flow.last = before
    else after.before = before
    ticket.before = null
    ticket.after = null
    this.waiting--
    flow.waiting--
    if (flow.waiting > 0) return
    this.#due.remove(flow)
    if (flow.virtualTokens <= this.#dueAtOnce()) this.#flows.delete(flow.principal)
  }

  /**
   * Charges the difference between the estimated and the real cost of a granted call. A refund never
   * puts a principal before those that come new.
   */
  correct(flow: Flow<Call>, tokens: number) {
    if (this.#flows.get(flow.principal) !== flow) return
    flow.virtualTokens = Math.max(this.#dueAtOnce(), flow.virtualTokens + tokens)
    if (flow.waiting > 0) this.#due.update(flow)
  }

  /** First those without debt. */
  #forgetIdle() {
    const idle = [...this.#flows.values()].filter(({ waiting }) => waiting === 0)
    const settled = idle.filter(({ virtualTokens }) => virtualTokens <= this.#dueAtOnce())
    for (const { principal } of settled.length > 0 ? settled : idle) this.#flows.delete(principal)
  }
}
