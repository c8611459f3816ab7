import { openDescriptors } from '#test/support/process.ts'
import { type Book, describeOperation } from '../record.ts'
import { drainMs } from '../site/replicas.ts'
import type { Site } from '../site/site.ts'

/** Counts of open descriptors by kind, by process. */
type Descriptors = ReadonlyMap<number, Readonly<Record<string, number>>>

/** How long a killed process may take to end, and a worker of a killed supervisor to notice. */
const endingMs = 6_000
/** The client may notice before the kill is recorded. */
const noticedMs = 100
/** Pools of connections grow and shrink by so many sockets; threads start with their first use. */
const allowances: Readonly<Record<string, number>> = { socket: 40, anon_inode: 4 }

export function describeDescriptors({ replicas }: Site): Descriptors {
  const pids = replicas.flatMap((replica) => replica.workers())
  return new Map(
    pids.map((pid) => {
      const counts: Record<string, number> = {}
      for (const target of openDescriptors(pid)) {
        const kind = kindOf(target)
        counts[kind] = (counts[kind] ?? 0) + 1
      }
      return [pid, counts]
    }),
  )
}

function kindOf(target: string): string {
  if (target.endsWith(' (deleted)')) return 'deleted file'
  return /^([a-z_[\]]+):/.exec(target)?.[1] ?? (target.startsWith('/dev/') ? 'device' : 'file')
}

/** Work without faults opens nothing that stays open, and no worker died or reported a defect. */
export function checkProcesses(
  { site, book }: { site: Site; book: Book },
  before: Descriptors,
): void {
  for (const [pid, counts] of describeDescriptors(site)) {
    const earlier = before.get(pid)
    if (earlier === undefined) {
      book.violate('no worker dies without a fault', `worker ${pid} is new`)
      continue
    }
    for (const [kind, count] of Object.entries(counts)) {
      const allowed = (earlier[kind] ?? 0) + (allowances[kind] ?? 0)
      if (count > allowed) {
        book.violate(
          'no descriptor is left open',
          `worker ${pid}: ${count} ${kind}, before ${allowed}`,
        )
      }
    }
  }
  const defects = new Set(['uncaught exception', 'unhandled rejection'])
  for (const { name, runs } of site.replicas) {
    for (const line of runs.flatMap((run) => run.log())) {
      if (!defects.has(String(line['message']))) continue
      book.violate('no defect is logged', `${name}: ${JSON.stringify(line).slice(0, 800)}`)
    }
  }
}

/** Operations and log lines of the ids that violations name, for reading. */
export function describeIds({ site, book }: { site: Site; book: Book }): string[] {
  const ids = new Set(
    book.violations.flatMap(({ detail }) => detail.match(/\b(req|resp)_[a-z0-9]{20,}\b/g) ?? []),
  )
  const operations = book.operations
    .filter(({ facts }) => facts.some((fact) => ids.has(fact)))
    .map(describeOperation)
  const lines = site.replicas.flatMap(({ name, runs }) =>
    runs.flatMap((run) => run.log().map((line) => `${name} ${JSON.stringify(line)}`)),
  )
  const isNamed = (line: string) => [...ids].some((id) => line.includes(id))
  const isDefect = (line: string) => line.includes('"kind":"internal_error"')
  return [...operations, ...lines.filter((line) => isDefect(line) || isNamed(line))]
}

/**
 * A connection may break if a process that may have held it was killed, or if its request took longer than
 * the whole drain period of a stop, and for no other reason.
 */
export function checkBrokenConnections({ site, book }: { site: Site; book: Book }): void {
  for (const operation of book.operations) {
    const { outcome, startedMs, endedMs } = operation
    if (outcome !== 'unknown') continue
    const isKilled = site.kills.some(
      ({ atMs }) => atMs >= startedMs - endingMs && atMs <= endedMs + noticedMs,
    )
    const isCut = site.cuts.some(
      ({ beganMs }) => startedMs <= beganMs && endedMs >= beganMs + drainMs,
    )
    if (isKilled || isCut) continue
    book.violate('connections break only when a process is killed', describeOperation(operation))
  }
}
