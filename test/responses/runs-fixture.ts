import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { type Database, openDatabase } from '#db/client.ts'
import type { EventBatch } from '#inference/events.ts'
import { createJobs } from '#jobs/jobs.ts'
import { newId } from '#lib/id.ts'
import type { Frames } from '#responses/frame-stream.ts'
import type { ResponseObject } from '#responses/response.ts'
import {
  createResponseRuns,
  type ResponseRuns,
  type RunPlan,
  type RunsDeps,
} from '#responses/runs.ts'
import { createResponseStore, type ResponseStore } from '#responses/store.ts'
import type { QueuedResponse, ResponseHead } from '#responses/stored.ts'
import { renderEndedStream } from '#surfaces/responses/ended-stream.ts'
import { noHistory } from '#surfaces/responses/history.ts'
import { createLogReplay } from '#surfaces/responses/log-replay.ts'
import { parseCreateResponse } from '#surfaces/responses/parse.ts'
import { ResponseRenderer, renderQueued, renderTerminalFrames } from '#surfaces/responses/render.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { openSeal, testSeals } from '#test/support/sealing.ts'
import { ann, message } from './store-fixture.ts'

/** Runs of one or several workers on a real database; generations are scripted. */
export type RunsFixture = {
  readonly database: TestDatabase
  /** Starts another worker on the same database. */
  replica(given?: ReplicaOptions): Promise<Replica>
  close(): Promise<void>
}

export type Replica = ResponseRuns & { readonly store: ResponseStore }

type ReplicaOptions = {
  settings?: Partial<Config['responses']>
  heartbeatMs?: number
  soleProcess?: boolean
  log?: RunsDeps['log']
  /** Wraps the store. */
  wrapStore?: (store: ResponseStore) => ResponseStore
  /** It receives no notifications of other workers. */
  isIsolated?: boolean
  /** It is never closed. */
  isNeverClosed?: boolean
}

const { echo } = parseCreateResponse(
  { model: 'm', input: 'x' },
  { limits: loadConfig({}).limits, history: noHistory, seals: testSeals },
)

const quick = { flushMs: 5, lostAfterMs: 60_000 }

export async function startRunsFixture(): Promise<RunsFixture> {
  const database = await openTestDatabase()
  const closings: (() => Promise<void>)[] = []
  const now = () => new Date()
  const connect = async () => {
    const { databaseUrl, dataFolder } = database.place
    if (databaseUrl === undefined) return database
    const again = await openDatabase({ databaseUrl, dataFolder, connectionsMax: 3, log: quietLog })
    closings.push(again.close)
    return again
  }
  return {
    database,
    async replica(given = {}) {
      const settings = { ...loadConfig({}).responses, ...quick, ...given.settings }
      const own: Database = closings.length === 0 ? database : await connect()
      const real = createResponseStore(own, { limits: settings, ttlS: () => settings.ttlS, now })
      const store = given.wrapStore?.(real) ?? real
      const jobs = await createJobs({ database: own, log: quietLog, timings: { pollMs: 50 } })
      if (!given.isNeverClosed) closings.push(jobs.close)
      const runs = await createResponseRuns({
        store,
        // Not the name of a connection: a replica that is silent counts as dead.
        runnerId: newId('run_'),
        jobs,
        bus: given.isIsolated ? { ...own, listen: async () => {} } : own,
        soleProcess: given.soleProcess ?? false,
        settings,
        heartbeatMs: given.heartbeatMs ?? 60_000,
        rendering: { renderTerminalFrames, renderEndedStream, replayLog: createLogReplay },
        log: given.log ?? quietLog,
        now,
      })
      if (!given.isNeverClosed) closings.push(runs.close)
      return { ...runs, store: real }
    },
    async close() {
      for (const close of closings.reverse()) await close()
      await database.close()
    },
  }
}

function headOf(given: Partial<ResponseHead> = {}): ResponseHead {
  return {
    id: newId('resp_'),
    ownerId: ann,
    background: false,
    createdAt: new Date(),
    previousResponseId: null,
    conversationId: null,
    input: [message('hello')],
    ...given,
  }
}

type Generate = RunPlan['generate']

/** The plan of a foreground run, or of a queued response after its first frames. */
export function planOf(
  generate: Generate,
  head: ResponseHead = headOf(),
  framesBefore = 0,
): RunPlan & { readonly head: ResponseHead } {
  const renderer = new ResponseRenderer({
    id: head.id,
    createdAt: head.createdAt,
    echo,
    includeSealed: true,
    includeSearchResults: ['file_search_call'],
    reasoningSeal: openSeal,
    stream: true,
    framesBefore,
    now: () => new Date(0),
  })
  return { head, renderer, generate }
}

export function queuedOf(given: Partial<QueuedResponse> = {}): QueuedResponse {
  const head = headOf({ background: true, ...given })
  const { object, frames, count } = renderQueued({
    id: head.id,
    createdAt: head.createdAt,
    echo,
  })
  const segment = { first: 0, last: count - 1, frames }
  return { ...head, keyId: 'key', request: 'sealed', object: plain(object), segment, ...given }
}

/** Plans a queued response with this generation. */
export const planQueued = (generate: Generate) => async (queued: QueuedResponse) =>
  planOf(generate, queued, queued.segment.last + 1)

function plain(object: object): ResponseObject {
  return JSON.parse(JSON.stringify(object))
}

/** The event batches of an output text, one per chunk. */
export function eventsOf(textChunks: readonly string[]): EventBatch[] {
  return [
    [{ type: 'generation-start' }, { type: 'text-start', block: 0, form: 'answer' }],
    ...textChunks.map((text): EventBatch => [{ type: 'text-delta', block: 0, text }]),
    [
      { type: 'text-end', block: 0, complete: true },
      { type: 'finish', reason: 'stop', rawReason: 'stop', usage: null },
    ],
  ]
}

/** Yields all batches as fast as they are pulled. */
export function immediately(batches: readonly EventBatch[]): Generate {
  return async function* () {
    yield* batches
  }
}

/** A generation controlled by a test. */
export type ControlledGeneration = {
  readonly generate: Generate
  give(...batches: readonly EventBatch[]): void
  /** Throws in the generation. */
  break(error: unknown): void
  taken(): number
  signal(): AbortSignal | undefined
}

export function controlledGeneration(): ControlledGeneration {
  const given: (EventBatch | { broken: unknown })[] = []
  let wake = () => {}
  let taken = 0
  let handed: AbortSignal | undefined
  const add = (...next: typeof given) => {
    given.push(...next)
    wake()
  }
  return {
    async *generate(signal): AsyncGenerator<EventBatch, void> {
      handed = signal
      signal.addEventListener('abort', () => wake())
      for (;;) {
        const next = given.shift()
        if (signal.aborted) throw signal.reason
        if (next === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        } else if ('broken' in next) {
          throw next.broken
        } else {
          taken += 1
          yield next
        }
      }
    },
    give: (...batches) => add(...batches),
    break: (broken) => add({ broken }),
    taken: () => taken,
    signal: () => handed,
  }
}

export const forever = new AbortController().signal

/** Reads all frames. */
export async function readAll(frames: Frames | undefined): Promise<string> {
  if (frames === undefined) throw new Error('no such response')
  return (await Array.fromAsync(frames)).join('')
}

/** Reads in the background and exposes what was read. */
export function readOn(frames: Frames | undefined): {
  text(): string
  count(): number
  whole: Promise<string>
} {
  if (frames === undefined) throw new Error('no such response')
  let text = ''
  const read = async () => {
    for await (const some of frames) text += some
    return text
  }
  const whole = read()
  whole.catch(() => {})
  return { text: () => text, count: () => text.split('\n\n').length - 1, whole }
}

/** Splits frames. */
export const framesOf = (text: string) =>
  text
    .split('\n\n')
    .slice(0, -1)
    .map((frame) => `${frame}\n\n`)

export const typesOf = (text: string) =>
  framesOf(text).map((frame) => frame.slice('event: '.length, frame.indexOf('\n')))

export const watchFrom = (startingAfter: number, signal: AbortSignal = forever) => ({
  startingAfter,
  signal,
})

export const textChunks = ['one ', 'two ', 'three']

/** A run that has sent some frames and waits for more events. */
export async function startPartialRun(runs: Replica) {
  const generation = controlledGeneration()
  const run = runs.start(planOf(generation.generate))
  generation.give(...eventsOf(textChunks).slice(0, 3))
  const reader = readOn(run.frames(forever))
  await eventually('it is halfway', () => reader.count() >= 6)
  return { run, reader, generation, rest: eventsOf(textChunks).slice(3) }
}

/** Simulated database state: rejects queries, does not respond, or works. */
export type DatabaseFault = {
  state: 'none' | 'failing' | 'silent'
  /** Rejected queries. */
  refused: number
  wrapStore(store: ResponseStore): ResponseStore
}

export function createDatabaseFault(): DatabaseFault {
  const fault: DatabaseFault = {
    state: 'none',
    refused: 0,
    wrapStore: (store) =>
      new Proxy(store, {
        get(target, name, receiver) {
          if (fault.state === 'none') return Reflect.get(target, name, receiver)
          if (fault.state === 'silent') return () => new Promise(() => {})
          return () => {
            fault.refused += 1
            return Promise.reject(new Error('the database is unavailable'))
          }
        },
      }),
  }
  return fault
}
