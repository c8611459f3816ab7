import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { newId } from '#lib/id.ts'
import type { ResponseObject, ResponseStatus, StoredItem } from '#responses/response.ts'
import { createResponseStore, type ResponseStore } from '#responses/store.ts'
import type {
  EndedResponse,
  LogSegment,
  OpenedResponse,
  QueuedResponse,
} from '#responses/stored.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'

type StoreDatabase = Parameters<typeof createResponseStore>[0]

/** A store on a separate database, with a movable clock and configurable limits. */
export type StoreFixture = {
  readonly database: TestDatabase
  readonly store: ResponseStore
  storeWith(limits: Partial<Config['responses']>, other?: StoreDatabase): ResponseStore
  pass(ms: number): void
  now(): Date
  close(): Promise<void>
}

export const ann = '00000000-0000-8000-8000-00000000000a'
export const bob = '00000000-0000-8000-8000-00000000000b'

export async function startStore(): Promise<StoreFixture> {
  const database = await openTestDatabase()
  let offsetMs = 0
  const now = () => new Date(Date.now() + offsetMs)
  const defaults = loadConfig({}).responses
  const storeWith = (limits: Partial<Config['responses']>, other: StoreDatabase = database) =>
    createResponseStore(other, {
      limits: { ...defaults, ...limits },
      ttlS: () => limits.ttlS ?? defaults.ttlS,
      now,
    })
  return {
    database,
    store: storeWith({}),
    storeWith,
    now,
    pass(ms) {
      offsetMs += ms
    },
    close: () => database.close(),
  }
}

export function message(text: string, id = newId('msg_')): StoredItem {
  return { type: 'message', id, role: 'user', content: [{ type: 'input_text', text }] }
}

export function objectOf(
  id: string,
  status: ResponseStatus,
  output: readonly StoredItem[] = [],
): ResponseObject {
  return { id, object: 'response', status, output, model: 'm' }
}

export function segment(first: number, last: number, text = 'x'): LogSegment {
  return { first, last, frames: `data: {"frames":"${first}-${last} ${text}"}\n\n` }
}

/** The end of a response of Ann. */
export function endOf(
  object: ResponseObject,
  given: { segment?: LogSegment; conversationId?: string | null } = {},
): EndedResponse {
  return { id: object.id, ownerId: ann, conversationId: null, object, segment: null, ...given }
}

/** An opened response with defaults. */
export function opened(given: Partial<OpenedResponse> = {}): OpenedResponse {
  const id = given.id ?? newId('resp_')
  return {
    id,
    ownerId: ann,
    background: false,
    createdAt: new Date(),
    previousResponseId: null,
    conversationId: null,
    input: [message('hello')],
    runnerId: 'runner',
    object: objectOf(id, 'in_progress'),
    ...given,
  }
}

/** Enqueues a response without a job; false: its key has `unfinishedMax` of them. */
export function enqueue(store: ResponseStore, response: QueuedResponse, unfinishedMax = 100) {
  return store.enqueue(response, { unfinishedMax, addJob: async () => {} })
}

export function queued(given: Partial<QueuedResponse> = {}): QueuedResponse {
  const { runnerId: _, ...head } = opened({ background: true, ...given })
  return {
    ...head,
    keyId: 'key',
    request: 'sealed',
    object: objectOf(head.id, 'queued'),
    segment: segment(0, 1),
    ...given,
  }
}

/** Writes a response that opens and ends in one write. */
export async function addEnded(
  store: ResponseStore,
  given: Partial<OpenedResponse> & { output?: readonly StoredItem[]; status?: ResponseStatus } = {},
): Promise<OpenedResponse> {
  const { output = [message('answer')], status = 'completed', ...head } = given
  const response = opened(head)
  const object = objectOf(response.id, status, output)
  await store.write({
    opened: [response],
    logged: [],
    ended: [{ ...response, object, segment: segment(0, 3) }],
  })
  return response
}

export const nothing = { opened: [], logged: [], ended: [] }

export const textsOf = (items: readonly StoredItem[] = []) =>
  items.map((item) => Object(item['content'])[0].text)
