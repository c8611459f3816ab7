import {
  createCallQueue,
  type EndedWait,
  type QueueSettings,
} from '#inference/fair-queue/call-queue.ts'
import type { ModelCall } from '#inference/inference.ts'
import type { Probes } from '#inference/routing/checks.ts'
import { createRouter } from '#inference/routing/router.ts'
import type { Slot } from '#inference/routing/slot.ts'
import { nothingTried } from '#inference/routing/usable.ts'
import { adaptersWithoutModels } from './adapters.ts'
import { makeRequest, makeRequestContext } from './generation.ts'
import { target } from './generations.ts'
import { openTransport } from './transport.ts'

/** A router whose upstreams have few slots, and the queue of calls that wait for them. */

const queueSettings: QueueSettings = {
  waitMaxMs: 60_000,
  backgroundWaitMaxMs: 600_000,
  waitingMax: 100,
  waitingPerPrincipalMax: 50,
}

type Asked = {
  readonly upstreams?: readonly string[]
  readonly userId?: string
  readonly keyId?: string | null
  readonly priority?: 'background' | 'batch'
  readonly serviceTier?: string
  readonly text?: string
}

/** A call of this user, and the controller of its signal. */
export function makeCall(asked: Asked = {}): { call: ModelCall; client: AbortController } {
  const { upstreams = ['gpu'], userId = 'anne', keyId = null, text = 'Hello' } = asked
  const client = new AbortController()
  const base = makeRequestContext(client.signal)
  const context = {
    ...base,
    principal: { userId, groups: [] },
    keyId,
    priority: asked.priority,
  }
  const request = makeRequest({
    items: [{ type: 'message', role: 'user', parts: [{ type: 'text', text }] }],
    serviceTier: asked.serviceTier ?? null,
  })
  const targets = upstreams.map((name) => ({ ...target(`http://${name}.test/v1`, name), tier: 0 }))
  return { call: { context, targets, request }, client }
}

export function startQueue(
  options: {
    settings?: Partial<QueueSettings>
    /** Of every upstream; 1 by default. */
    slots?: number
    slotsOf?: (upstream: string) => number
    nowMs?: () => number
    random?: () => number
    probes?: Probes
  } = {},
) {
  const { slots = 1, slotsOf = () => slots, random = () => 0.5 } = options
  const { nowMs = () => performance.now() } = options
  const probing = options.probes === undefined ? {} : { probes: options.probes }
  const ended: EndedWait[] = []
  const queue = createCallQueue({
    settings: { ...queueSettings, ...options.settings },
    nowMs,
    onEnded: (wait) => ended.push(wait),
  })
  const router = createRouter({ queue, nowMs, random, maxInFlightOf: slotsOf, ...probing })
  /** Takes a slot, or waits for one, as an attempt does. */
  const ask = (asked: Asked = {}) => {
    const { call, client } = makeCall(asked)
    const slot = router.take(call, nothingTried)
    const waiting = slot === null ? router.wait(call, nothingTried, client.signal) : null
    const granted: { slot: Slot | null; error: unknown } = { slot, error: null }
    waiting?.then(
      (taken) => {
        granted.slot = taken
      },
      (error: unknown) => {
        granted.error = error
      },
    )
    return { call, client, granted }
  }
  const upstream = (name = 'gpu') => {
    for (const state of router.upstreams()) if (state.upstream.name === name) return state
    throw new Error(`no upstream ${name}`)
  }
  return { queue, router, ended, ask, upstream }
}

/** For attempts whose operation is a function of the test. */
export const unusedDeps = {
  adapters: adaptersWithoutModels,
  transport: openTransport(),
  limits: { eventBytesMax: 1, toolArgumentCharsMax: 1, streamsMax: 1, outputCharsMax: 1 },
  deadlines: { firstEventMs: 1, gapMs: 1, totalMs: 1 },
  retry: { retriesMax: 3, backoffMs: 20, retryAfterMaxMs: 100 },
  onSettled() {},
}
