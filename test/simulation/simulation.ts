import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkAcknowledged } from './checks/acknowledged.ts'
import { checkLedger } from './checks/ledger.ts'
import { waitUntilSettled } from './checks/leftovers.ts'
import {
  checkBrokenConnections,
  checkProcesses,
  describeDescriptors,
  describeIds,
} from './checks/processes.ts'
import { checkWebhooks, subscribe } from './checks/webhooks.ts'
import { Broken, type Client, createClient, jsonOnceAvailable, Refused } from './client.ts'
import { driveFaults, type Progress } from './drive-faults.ts'
import { planFaults } from './faults.ts'
import { batches } from './operations/batches.ts'
import { documents } from './operations/documents.ts'
import { modelCalls } from './operations/model-calls.ts'
import type { OperationKind, Peer } from './operations/operation.ts'
import { administration, platform } from './operations/platform.ts'
import { storedResponses } from './operations/stored-responses.ts'
import {
  type Book,
  createBook,
  describeOperation,
  type Operation,
  ViolationError,
} from './record.ts'
import { type Site, startSite } from './site/site.ts'
import { createWorld, type World } from './world.ts'

export type SimulationOptions = {
  readonly seed: number
  /** Of all clients together, under faults. */
  readonly operations: number
  readonly print: (line: string) => void
}

const calmTriesMax = 5
const calmPauseMs = 1_000
/** Of the log of the gateways, about what violations name. */
const logLinesMax = 60
const clientsCount = 10
/** The first clients are administrators, and change the settings. */
const adminsCount = 2

/** Null without an installed PostgreSQL. */
export async function simulate(options: SimulationOptions): Promise<Book | null> {
  const { seed, operations, print } = options
  const book = createBook()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-simulation-'))
  // The database server is another user.
  chmodSync(folder, 0o711)
  const site = await startSite(folder, book)
  if (site === null) return null
  try {
    if (site.disk.fill === null) print('the disk never fills: this process may not mount a tmpfs')
    const world = createWorld()
    const clients = await createClients(seed, site)
    for (const client of clients) await subscribe(client, site)
    const peers = await Promise.all(
      clients.map(async (client) => ({
        index: client.index,
        userId: String((await jsonOnceAvailable(client, '/v1/me'))['id']),
      })),
    )
    const run: Run = { site, world, clients, peers, book, seed }

    const planned = planFaults(seed, operations)
    const progress: Progress = { begun: 0, isOver: false }
    const driving = driveFaults({ site, book, planned, progress, print })
    await playAll(run, progress, operations)
    progress.isOver = true
    await driving
    checkBrokenConnections(run)
    print('settling')
    await settle(run, 'after the faults')
    await checkAcknowledged(run)
    await checkWebhooks(run)
    await checkLedger(run)

    print('calm: every operation must succeed')
    for (const client of clients) client.isCalm = true
    // Restarted workers start threads and open what they keep.
    await playCalmly(run)
    await settle(run, 'after the first calm')
    const before = describeDescriptors(site)
    await playCalmly(run)
    await settle(run, 'after the calm')
    checkProcesses(run, before)
    await checkAcknowledged(run)
    await checkWebhooks(run)
    await checkLedger(run)

    print('restart')
    for (const replica of site.replicas) {
      await site.stopReplica(replica)
      await site.startReplica(replica)
    }
    await checkAcknowledged(run)
    await checkWebhooks(run)
    await settle(run, 'after a restart')
    for (const replica of site.replicas) await site.stopReplica(replica)
    for (const line of describeIds(run).slice(0, logLinesMax)) print(line)
    return book
  } finally {
    await site.close()
  }
}

type Run = {
  readonly site: Site
  readonly world: World
  readonly clients: readonly Client[]
  readonly peers: readonly Peer[]
  readonly book: Book
  readonly seed: number
}

function createClients(seed: number, { rotation: origins }: Site): Promise<Client[]> {
  const create = (_: unknown, index: number) =>
    createClient({ index, seed, origins, groups: index < adminsCount ? ['admins'] : ['users'] })
  return Promise.all(Array.from({ length: clientsCount }, create))
}

function kindsOf({ seed }: Run, { index }: Client): readonly OperationKind[] {
  const everyone = [...modelCalls, ...storedResponses, ...documents(seed), ...batches, ...platform]
  return index < adminsCount ? [...everyone, ...administration] : everyone
}

/** The clients play at the same time, each one operation after the other. */
async function playAll(run: Run, progress: Progress, operations: number): Promise<void> {
  await Promise.all(
    run.clients.map(async (client) => {
      const kinds = kindsOf(run, client)
      while (progress.begun < operations) {
        progress.begun++
        await play(run, client, draw(kinds, client.random()))
      }
    }),
  )
}

/** Every client does each kind of operation, without faults. */
async function playCalmly(run: Run): Promise<void> {
  await Promise.all(
    run.clients.map(async (client) => {
      for (const kind of kindsOf(run, client)) {
        let operation = await play(run, client, kind)
        // A busy machine may exceed the time limit of a query.
        for (let tries = 1; tries < calmTriesMax && isUnavailable(operation); tries++) {
          await Bun.sleep(calmPauseMs)
          operation = await play(run, client, kind)
        }
        if (['acknowledged', 'violated'].includes(operation.outcome) || isConflict(operation))
          continue
        run.book.violate('without faults every operation succeeds', describeOperation(operation))
      }
    }),
  )
}

/** Of two administrators. */
function isConflict({ facts }: Operation): boolean {
  return facts.some((fact) => fact.startsWith('refused 412 '))
}

function isUnavailable({ facts }: Operation): boolean {
  return facts.at(-1) === 'refused 503 service_unavailable'
}

function draw(kinds: readonly OperationKind[], chance: number): OperationKind {
  let left = chance * kinds.reduce((sum, { weight }) => sum + weight, 0)
  const drawn = kinds.find(({ weight }) => {
    left -= weight
    return left < 0
  })
  const [first] = kinds
  if (first === undefined) throw new Error('no operations')
  return drawn ?? first
}

async function play(run: Run, client: Client, { kind, play }: OperationKind): Promise<Operation> {
  const { book, world, peers } = run
  const operation: Operation = {
    number: book.operations.length + 1,
    client: client.name,
    kind,
    startedMs: performance.now(),
    endedMs: Number.POSITIVE_INFINITY,
    outcome: 'running',
    facts: [],
  }
  book.operations.push(operation)
  client.facts = operation.facts
  try {
    await play({ client, world, peers })
    operation.outcome = 'acknowledged'
  } catch (error) {
    operation.endedMs = performance.now()
    operation.outcome = outcomeOf(error, operation)
    if (operation.outcome === 'violated') {
      const invariant = error instanceof ViolationError ? error.invariant : 'no unexpected failure'
      const reason = error instanceof Error ? error.message : String(error)
      book.violate(invariant, `${describeOperation(operation)}: ${reason}`)
    }
  }
  operation.endedMs = performance.now()
  return operation
}

/** Refusals that faults and full disks explain; any other is a violation. */
const expectedRefusals = new Set([404, 409, 412, 429, 502, 503, 504, 507])

function outcomeOf(error: unknown, { facts }: Operation): Operation['outcome'] {
  if (error instanceof Refused) {
    facts.push(`refused ${error.status} ${error.code}`)
    return expectedRefusals.has(error.status) ? 'refused' : 'violated'
  }
  if (!(error instanceof Broken)) return 'violated'
  facts.push(error.message)
  return 'unknown'
}

async function settle({ site, book }: Run, when: string): Promise<void> {
  for (const left of await waitUntilSettled(site)) {
    book.violate('nothing is left over', `${when}: ${left}`)
  }
}
