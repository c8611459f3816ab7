import { AppError } from '#lib/errors.ts'
import { createSingleFlight } from '#lib/single-flight.ts'
import { withTimeLimit } from '#lib/time-limit.ts'
import type { CollectedTraffic, TrafficMessage, TrafficOrder } from './messages.ts'
import type { TrafficReport } from './report.ts'

/** Beyond the time that the supervisor gives the workers. */
const replyMsMax = 3_000

/** The channel to the supervisor; its messages include those of others. */
export type TrafficChannel = {
  send(message: TrafficMessage): void
  onMessage(listen: (order: TrafficOrder | { readonly type: 'other' }) => void): void
}

/** Asks all workers of this machine what they do now. */
export type CollectTraffic = () => Promise<CollectedTraffic>

/**
 * The worker's end: reports when the supervisor asks. Without a supervisor, this process is the only
 * worker.
 */
export function connectTraffic(
  channel: TrafficChannel | null,
  report: () => TrafficReport,
): CollectTraffic {
  if (channel === null) return () => Promise.resolve({ reports: [report()], missing: 0 })
  const singleFlight = createSingleFlight<CollectedTraffic>()
  const waiting = new Map<number, (collected: CollectedTraffic) => void>()
  let requests = 0
  channel.onMessage((order) => {
    if (order.type === 'collect-traffic') {
      channel.send({ type: 'traffic-report', report: report() })
    } else if (order.type === 'traffic-reports') {
      waiting.get(order.id)?.(order)
    }
  })
  // Any number of viewers costs one round at a time.
  return () =>
    singleFlight('all', async () => {
      const id = ++requests
      const reply = Promise.withResolvers<CollectedTraffic>()
      waiting.set(id, reply.resolve)
      try {
        channel.send({ type: 'traffic-request', id })
        return await withTimeLimit(reply.promise, replyMsMax, noReply)
      } finally {
        waiting.delete(id)
      }
    })
}

function noReply(): AppError {
  return new AppError('service_unavailable', 'The supervisor does not respond; retry.', {
    retryAfterS: 1,
  })
}
