import { orAfter } from '#lib/time-limit.ts'
import type { TrafficMessage, TrafficOrder } from './messages.ts'
import type { TrafficReport } from './report.ts'

/** How long a request waits for the workers. */
const collectMsMax = 1_000

type Member = {
  readonly send: (order: TrafficOrder) => void
  /** Each worker has at most one unanswered order, so a stopped one costs no memory. */
  pending: PromiseWithResolvers<TrafficReport | null> | null
}

/** The traffic of one worker process, as the supervisor exchanges it. */
export type WorkerTraffic = {
  received(message: TrafficMessage): void
  ended(): void
}

export type FleetTraffic = ReturnType<typeof createFleetTraffic>

/** Collects what all workers of a machine do now, for the worker that asks. */
export function createFleetTraffic() {
  const members = new Set<Member>()

  function collect(member: Member): Promise<TrafficReport | null> {
    if (member.pending === null) {
      member.pending = Promise.withResolvers()
      try {
        member.send({ type: 'collect-traffic' })
      } catch {
        // The channel of a worker that has just ended is closed.
        settle(member, null)
        return Promise.resolve(null)
      }
    }
    return orAfter(member.pending.promise, collectMsMax, null)
  }

  function settle(member: Member, report: TrafficReport | null): void {
    member.pending?.resolve(report)
    member.pending = null
  }

  async function respond(asker: Member, id: number): Promise<void> {
    const replies = await Promise.all([...members].map(collect))
    const reports = replies.filter((reply) => reply !== null)
    const missing = replies.length - reports.length
    try {
      asker.send({ type: 'traffic-reports', id, reports, missing })
    } catch {
      // The worker has ended meanwhile.
    }
  }

  return {
    /** Registers a worker that has started to listen. */
    add(send: Member['send']): WorkerTraffic {
      const member: Member = { send, pending: null }
      members.add(member)
      return {
        received(message) {
          if (message.type === 'traffic-report') settle(member, message.report)
          else void respond(member, message.id)
        },
        ended() {
          members.delete(member)
          settle(member, null)
        },
      }
    },
  }
}
