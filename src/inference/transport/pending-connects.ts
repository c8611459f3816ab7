import { connect as openProbe } from 'node:net'
import { AppError } from '#lib/errors.ts'
import { startLimit } from '#lib/time-limit.ts'
import type { Endpoint } from './http1-request.ts'

export type PendingConnects = ReturnType<typeof createPendingConnects>

/** Connects to one origin that requests wait for at a time. */
export const connectsPerOriginMax = 64
/** An origin that accepts no connection for this long is stalled. */
const stalledAfterMs = 1_000
/**
 * A connect that takes longer gives its turn to the next one if the origin accepts others: a full backlog
 * drops SYNs, the kernel repeats them only after a second, and every request would wait for these few.
 */
const turnMs = 100

/** One origin while it has connecting sockets. */
type Origin = {
  /** Connects that requests wait for. */
  awaited: number
  /** When each connecting socket was opened, oldest first; also those that were given up. */
  readonly sockets: Set<{ readonly sinceMs: number }>
  /** The last accepted connection, or the end of an idle period. */
  acceptedAtMs: number
  /** Whether it has accepted a connection since its last idle period. */
  hasAccepted: boolean
  /** Resumes connects that wait for their turn. */
  readonly turns: Set<() => void>
}

/**
 * Bounds the descriptors that an unresponsive upstream can hold. `Bun.connect` cannot close a
 * connecting socket: when it is given up, the kernel keeps it for another two minutes. A socket of
 * `node:net` can be closed at any time, so at a stalled origin one of these connects first.
 */
export function createPendingConnects() {
  const origins = new Map<string, Origin>()

  function forgetIdle(name: string, origin: Origin) {
    const isIdle = origin.awaited === 0 && origin.sockets.size === 0 && origin.turns.size === 0
    if (isIdle && origins.get(name) === origin) origins.delete(name)
  }

  return {
    /**
     * Calls `open` when it is its turn, unless `opened` has settled by then. Throws
     * `upstream_connect_timeout` at once when the origin is stalled and too many connects are pending.
     */
    async connect(endpoint: Endpoint, opened: Promise<void>, open: () => Promise<unknown>) {
      const { origin: name } = endpoint
      const origin = origins.get(name) ?? newOrigin()
      origins.set(name, origin)
      let isSettled = false
      const settled = opened
        .then(() => {
          origin.acceptedAtMs = performance.now()
          origin.hasAccepted = true
        })
        .catch(() => {})
        .then(() => {
          isSettled = true
        })

      while (isFull(origin)) await nextTurn(origin)
      if (isSettled) return wakeNext(origin)
      if (origin.awaited === 0) origin.acceptedAtMs = performance.now()
      origin.awaited += 1
      let hasTurn = true
      const endTurn = () => {
        if (!hasTurn) return
        hasTurn = false
        origin.awaited -= 1
        wakeNext(origin)
        forgetIdle(name, origin)
      }
      const stopTurn = startLimit(turnMs, () => {
        if (isAccepting(origin)) endTurn()
      })
      void settled.then(() => {
        stopTurn()
        endTurn()
      })
      if (isStalled(origin)) await probe(endpoint, settled)
      if (isSettled) return
      // An accepted probe does not prove that the next connect is accepted.
      if (origin.sockets.size >= 2 * connectsPerOriginMax) throw tooManyPending()
      const socket = { sinceMs: performance.now() }
      origin.sockets.add(socket)
      try {
        await open()
      } finally {
        origin.sockets.delete(socket)
        wakeNext(origin)
        forgetIdle(name, origin)
      }
    },
  }
}

function newOrigin(): Origin {
  return { awaited: 0, sockets: new Set(), acceptedAtMs: 0, hasAccepted: false, turns: new Set() }
}

function isAccepting({ acceptedAtMs, hasAccepted }: Origin): boolean {
  return hasAccepted && performance.now() - acceptedAtMs < stalledAfterMs
}

function isFull(origin: Origin): boolean {
  if (origin.awaited >= connectsPerOriginMax) return true
  return origin.sockets.size >= 2 * connectsPerOriginMax && isAccepting(origin)
}

function isStalled({ sockets }: Origin): boolean {
  const [oldest] = sockets
  return oldest !== undefined && performance.now() - oldest.sinceMs > stalledAfterMs
}

function wakeNext({ turns }: Origin): void {
  const [wake] = turns
  if (wake === undefined) return
  turns.delete(wake)
  wake()
}

/** Resolves when a connect has settled; throws when the origin has accepted none for too long. */
async function nextTurn(origin: Origin): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<'settled' | 'late'>()
  const wake = () => resolve('settled')
  origin.turns.add(wake)
  const waitMs = origin.acceptedAtMs + stalledAfterMs - performance.now()
  // Even without time left: after a suspension of the process, accepted connects are still unnoticed.
  const stop = startLimit(Math.max(0, waitMs), () => resolve('late'))
  const outcome = await promise
  stop()
  origin.turns.delete(wake)
  const isStalled = performance.now() - origin.acceptedAtMs >= stalledAfterMs
  if (outcome === 'late' && isStalled) throw tooManyPending()
}

/** Resolves once the origin accepts a connection, or nobody waits for one any more. */
function probe({ hostname, port }: Endpoint, settled: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = openProbe({ host: hostname, port })
    const end = () => {
      socket.destroy()
      resolve()
    }
    socket.on('connect', end)
    socket.on('error', reject)
    void settled.then(end)
  })
}

function tooManyPending(): AppError {
  return new AppError(
    'upstream_connect_timeout',
    'The upstream accepts no connections, and too many requests wait for one.',
    { cause: new Error(`more than ${connectsPerOriginMax} connects are pending`) },
  )
}
