import { killProcess } from '#test/support/process.ts'
import { seededRandom } from '#test/support/seeded-random.ts'
import type { Site } from './site/site.ts'

/** One fault of the schedule: when it begins and ends is counted in operations of all clients. */
export type PlannedFault = {
  readonly kind: FaultKind
  readonly atOperation: number
  readonly lastsOperations: number
  /** Chooses a replica, a worker or an upstream. */
  readonly draw: number
}

const faultKinds = [
  'worker killed',
  'worker frozen',
  'frozen worker killed',
  'PostgreSQL crashed',
  'PostgreSQL frozen',
  'upstream died',
  'upstream swallows requests',
  'disk full',
  'supervisor killed',
  'replica restarted',
] as const
type FaultKind = (typeof faultKinds)[number]

/** Between the beginnings of two faults, so that some overlap. */
const gapOperations = { min: 10, max: 26 }
const lastingOperations = { min: 4, max: 20 }
/** Faults that stop all clients end after this time. */
export const faultMsMax = 6_000

/** Each kind once in every round of the schedule, in an order that the seed decides. */
export function planFaults(seed: number, operations: number): PlannedFault[] {
  const random = seededRandom(seed ^ 0x5eed)
  const between = ({ min, max }: { min: number; max: number }) =>
    min + Math.floor(random() * (max - min + 1))
  const planned: PlannedFault[] = []
  let deck: FaultKind[] = []
  for (let at = gapOperations.max; at < operations; at += between(gapOperations)) {
    if (deck.length === 0) deck = [...faultKinds]
    const [kind = 'worker killed'] = deck.splice(Math.floor(random() * deck.length), 1)
    const lastsOperations = between(lastingOperations)
    planned.push({ kind, atOperation: at, lastsOperations, draw: random() })
  }
  return planned
}

export type BegunFault = { readonly target: string; end(): Promise<void> | void }

/** A fault that cannot happen now, such as a second crash of the same server. */
const notNow = null

/** Begins a fault; `end` heals it. Restarts of what was killed are the gateway's own. */
export async function beginFault(
  site: Site,
  { kind, draw }: PlannedFault,
): Promise<BegunFault | null> {
  const pick = <T>(list: readonly T[]) => list[Math.floor(draw * list.length)]
  const nothing = () => {}
  switch (kind) {
    case 'worker killed':
    case 'worker frozen':
    case 'frozen worker killed': {
      const workers = site.replicas.flatMap((replica) => replica.workers())
      const pid = pick(workers.filter((each) => !site.frozen.has(each)))
      if (pid === undefined) return notNow
      if (kind === 'worker killed') {
        site.kill(pid)
        return { target: `pid ${pid}`, end: nothing }
      }
      site.frozen.add(pid)
      killProcess(pid, 'SIGSTOP')
      return {
        target: `pid ${pid}`,
        end() {
          site.frozen.delete(pid)
          if (kind === 'frozen worker killed') site.kill(pid)
          else site.thaw(pid)
        },
      }
    }
    case 'PostgreSQL crashed':
    case 'PostgreSQL frozen': {
      if (site.isDatabaseDown || site.isReplicaDown) return notNow
      site.isDatabaseDown = true
      const isCrash = kind === 'PostgreSQL crashed'
      if (isCrash) await site.postgres.crash()
      else site.postgres.freeze()
      return {
        target: 'PostgreSQL',
        async end() {
          if (isCrash) await site.postgres.start()
          else site.postgres.thaw()
          site.isDatabaseDown = false
        },
      }
    }
    case 'upstream died':
    case 'upstream swallows requests': {
      const upstream = pick(site.upstreams)
      if (upstream === undefined) return notNow
      if (kind === 'upstream died') await upstream.die()
      else upstream.swallow()
      return {
        target: upstream.name,
        end: () => (kind === 'upstream died' ? upstream.comeBack() : upstream.recover()),
      }
    }
    case 'disk full': {
      if (site.disk.fill === null) return notNow
      site.disk.fill()
      return { target: 'disk', end: () => site.disk.free() }
    }
    case 'supervisor killed':
    case 'replica restarted': {
      const replica = pick(site.replicas)
      // A start needs the database; a frozen worker would not stop.
      if (replica === undefined || site.isReplicaDown || site.isDatabaseDown) return notNow
      if (replica.workers().some((pid) => site.frozen.has(pid))) return notNow
      site.isReplicaDown = true
      if (kind === 'supervisor killed') await site.killSupervisor(replica)
      else await site.stopReplica(replica)
      return {
        target: replica.name,
        async end() {
          await site.startReplica(replica)
          site.isReplicaDown = false
        },
      }
    }
  }
}
