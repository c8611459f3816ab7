import type { ModelCall } from '#inference/inference.ts'
import type { CapacityQueue, CapacityRequest } from '#inference/routing/capacity-queue.ts'
import type { Slot } from '#inference/routing/slot.ts'
import type { UpstreamState } from '#inference/routing/state.ts'
import { AppError } from '#lib/errors.ts'
import { createCallCosts } from './call-cost.ts'
import { FairQueue, type Priority, type QueueLimits, type QueueRefusal } from './fair-queue.ts'
import { Ticket } from './lane.ts'

export type QueueSettings = QueueLimits & {
  /** How long an interactive call waits. */
  readonly waitMaxMs: number
  /** How long background and batch calls wait. */
  readonly backgroundWaitMaxMs: number
}

type QueueOutcome = 'granted' | 'full' | 'principal_full' | 'expired' | 'abandoned' | 'failed'

export type EndedWait = {
  /** The name at its first upstream. */
  readonly model: string
  readonly priority: Priority
  readonly outcome: QueueOutcome
  readonly waitedMs: number
}

type CallQueueDeps = {
  readonly settings: QueueSettings
  readonly nowMs: () => number
  /** Called once for each call that had to wait or was refused. */
  readonly onEnded: (ended: EndedWait) => void
}

export type CallQueue = CapacityQueue & {
  /** Waiting calls by model and priority. */
  waiting(): readonly (readonly [calls: number, model: string, priority: Priority])[]
  /** Refuses every waiting call with this error, and those that follow. */
  stop(error: AppError): void
}

/** A waiting call, and how to tell it. */
type Waiting = {
  readonly request: CapacityRequest
  readonly model: string
  readonly priority: Priority
  readonly resolve: (slot: Slot) => void
  readonly reject: (error: unknown) => void
  readonly abandon: () => void
}

/** Capacity may also return with time, as after an ejection: waiting calls look for it this often. */
const lookEveryMs = 250
/** The time per call that is assumed before any call has ended. */
const unknownMs = 1_000
/** The weight of the latest call in the mean time in service. */
const latestWeight = 1 / 16
const retryAfterMaxS = 300

/** Where calls wait while no upstream has capacity for them. */
export function createCallQueue({ settings, nowMs, onEnded }: CallQueueDeps): CallQueue {
  const queue = new FairQueue<Waiting>(settings)
  const costs = createCallCosts()
  /** Calls that waited and still run, to charge their usage. */
  const granted = new Map<Slot, Ticket<Waiting>>()
  let timer: Timer | null = null
  let stopped: AppError | null = null

  const end = (ticket: Ticket<Waiting>, outcome: QueueOutcome) => {
    const { request, model, priority, abandon } = ticket.call
    request.signal.removeEventListener('abort', abandon)
    for (const upstream of request.upstreams) upstream.queued--
    onEnded({ model, priority, outcome, waitedMs: nowMs() - ticket.sinceMs })
  }

  const drop = (ticket: Ticket<Waiting>, outcome: QueueOutcome, error: unknown) => {
    queue.remove(ticket)
    end(ticket, outcome)
    ticket.call.reject(error)
  }

  /** Gives the free slots of an upstream to the calls that are next. */
  const serve = (upstream: UpstreamState) => {
    while (queue.size > 0 && upstream.inFlight < upstream.maxInFlight) {
      const taken: { slot: Slot | null; error: unknown } = { slot: null, error: null }
      const ticket = queue.grant(upstream.upstream.name, nowMs(), ({ request }) => {
        try {
          taken.slot = request.take()
        } catch (error) {
          taken.error = error
        }
        return taken.slot !== null || taken.error !== null
      })
      if (ticket === null) return
      if (taken.slot === null) {
        end(ticket, 'failed')
        ticket.call.reject(taken.error)
        continue
      }
      granted.set(taken.slot, ticket)
      end(ticket, 'granted')
      ticket.call.resolve(taken.slot)
    }
  }

  const serveAll = () => {
    const upstreams = new Set<UpstreamState>()
    for (const lane of queue.lanes()) {
      for (const upstream of lane.next()?.call.request.upstreams ?? []) upstreams.add(upstream)
    }
    for (const upstream of upstreams) serve(upstream)
  }

  /** Charges what a call that waited really used. */
  const settle = (slot: Slot) => {
    const ticket = granted.get(slot)
    if (ticket === undefined) return
    granted.delete(slot)
    const { usage } = slot
    if (usage !== null) queue.settle(ticket, costs.settledTokens(ticket.call.model, usage))
  }

  const look = () => {
    timer = null
    const now = nowMs()
    for (let ticket = queue.expire(now); ticket !== null; ticket = queue.expire(now)) {
      end(ticket, 'expired')
      ticket.call.reject(waitedTooLong(ticket, now))
    }
    serveAll()
    arm()
  }

  const arm = () => {
    if (timer !== null || queue.size === 0) return
    const dueMs = (queue.nextDeadlineMs() ?? Number.POSITIVE_INFINITY) - nowMs()
    timer = setTimeout(look, Math.max(0, Math.min(lookEveryMs, dueMs)))
  }

  const add = (waiting: Waiting): Ticket<Waiting> | QueueRefusal => {
    const { request, model, priority } = waiting
    const { call, upstreams } = request
    const now = nowMs()
    const isInteractive = priority === 'interactive'
    const maxMs = isInteractive ? settings.waitMaxMs : settings.backgroundWaitMaxMs
    return queue.add(
      waiting,
      {
        model,
        upstreams: upstreams.map(({ upstream }) => upstream.name),
        principal: principalOf(call),
        priority,
        costTokens: costs.estimateTokens(model, call.request ?? call.input ?? null),
        deadlineMs: now + maxMs,
        isRetry: request.isRetry,
      },
      now,
      usualIntervalMs(upstreams),
    )
  }

  return {
    wait: (request) =>
      new Promise<Slot>((resolve, reject) => {
        const { call, signal, upstreams } = request
        if (stopped !== null) return reject(stopped)
        if (signal.aborted) return reject(signal.reason)
        const model = call.targets[0]?.model ?? ''
        const priority = priorityOf(call)
        const abandon = () => {
          if (added instanceof Ticket) drop(added, 'abandoned', signal.reason)
        }
        const added = add({ request, model, priority, resolve, reject, abandon })
        if (!(added instanceof Ticket)) {
          const outcome = added.reason === 'queue_full' ? 'full' : 'principal_full'
          onEnded({ model, priority, outcome, waitedMs: 0 })
          return reject(refusal(added))
        }
        signal.addEventListener('abort', abandon, { once: true })
        for (const upstream of upstreams) upstream.queued++
        // A slot may be free that the calls before it cannot use.
        for (const upstream of upstreams) serve(upstream)
        arm()
      }),

    freed(upstream) {
      if (queue.size > 0) serve(upstream)
    },

    ended(slot) {
      if (slot.state.upstream.maxInFlight !== Number.POSITIVE_INFINITY) observe(slot, nowMs())
      if (granted.size > 0) settle(slot)
      if (queue.size > 0) serve(slot.state.upstream)
    },

    waiting: () =>
      [...queue.lanes()].flatMap((lane) => {
        const first = lane.next()
        return first === null ? [] : [[lane.waiting, lane.model, first.call.priority] as const]
      }),

    stop(error) {
      stopped = error
      for (const lane of [...queue.lanes()]) {
        for (let next = lane.next(); next !== null; next = lane.next()) {
          drop(next, 'abandoned', error)
        }
      }
      if (timer !== null) clearTimeout(timer)
      timer = null
    },
  }
}

/** Each key of a user has a share of its own, since applications of one owner have a key each. */
function principalOf({ context: { principal, keyId } }: ModelCall): string {
  return keyId === null ? principal.userId : `${principal.userId}\0${keyId}`
}

/** Callers may lower the priority of their own calls. */
function priorityOf({ context, request }: ModelCall): Priority {
  if (context.priority !== undefined) return context.priority
  return request?.serviceTier === 'flex' ? 'batch' : 'interactive'
}

function refusal({ reason, drainMs }: QueueRefusal): AppError {
  const retryAfterS = toRetryAfterS(drainMs)
  return reason === 'queue_full'
    ? new AppError('queue_full', 'Too many calls wait for this model; retry.', { retryAfterS })
    : new AppError(
        'rate_limit_exceeded',
        'Too many calls of this key wait for this model; retry.',
        { retryAfterS },
      )
}

function waitedTooLong(
  { lane, sinceMs, call: { request } }: Ticket<Waiting>,
  nowMs: number,
): AppError {
  const waitedS = Math.round((nowMs - sinceMs) / 1_000)
  return new AppError(
    'queue_timeout',
    `All upstreams of the model were busy for ${waitedS} s; retry.`,
    {
      retryAfterS: toRetryAfterS(
        lane.drain.drainMs(lane.waiting + 1, nowMs, usualIntervalMs(request.upstreams)),
      ),
    },
  )
}

/** A mean of the time in service, from which the rate of a queue follows that has not drained yet. */
function observe({ state: { upstream }, startedAtMs }: Slot, nowMs: number) {
  const serviceMs = nowMs - startedAtMs
  const { meanServiceMs } = upstream
  upstream.meanServiceMs =
    meanServiceMs === 0 ? serviceMs : meanServiceMs + (serviceMs - meanServiceMs) * latestWeight
}

/** The time between two free slots while all are in use. */
function usualIntervalMs(upstreams: readonly UpstreamState[]): number {
  let perMs = 0
  for (const { maxInFlight, meanServiceMs } of upstreams) {
    if (meanServiceMs > 0) perMs += maxInFlight / meanServiceMs
  }
  return perMs === 0 ? unknownMs : 1 / perMs
}

function toRetryAfterS(drainMs: number): number {
  return Math.min(retryAfterMaxS, Math.max(1, Math.ceil(drainMs / 1_000)))
}
