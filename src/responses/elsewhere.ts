import { AppError } from '#lib/errors.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import type { Log } from '#telemetry/log.ts'
import { isOver, type ResponseObject } from './response.ts'
import type { ResponseStore } from './store.ts'
import type { FoundResponse } from './stored.ts'

/** What processes tell one another about responses. Messages may be lost; the database knows. */
export type Message =
  | { readonly what: 'queued' }
  | { readonly what: 'cancel' | 'deleted'; readonly id: string }

export type Bus = {
  listen(
    channel: string,
    listener: { onMessage(payload: string): void; onGap(): void },
  ): Promise<void>
  notify(channel: string, payload: string): Promise<void>
}

const channel = 'responses'
/** How long the process that runs a response may take to end it. */
const endWaitMaxMs = 10_000
const forceAfterMs = 3_000
const lookEveryMs = 50
/** A message that was lost is sent again. */
const looksPerMessage = 20

export function createMessages(bus: Bus, log: Pick<Log, 'warn'>) {
  return {
    listen: (hear: (message: Message) => void) =>
      bus.listen(channel, {
        onMessage(payload) {
          const message = readMessage(payload)
          if (message !== null) hear(message)
        },
        onGap: () => hear({ what: 'queued' }),
      }),
    /** Nobody waits for it. */
    tell(message: Message): void {
      bus.notify(channel, JSON.stringify(message)).catch((error: unknown) => {
        log.warn('other workers could not be told of a response', { error })
      })
    },
  }
}

function readMessage(payload: string): Message | null {
  const message = parseJson(payload)
  if (!isRecord(message)) return null
  const { what, id } = message
  if (what === 'queued') return { what }
  if ((what === 'cancel' || what === 'deleted') && typeof id === 'string') return { what, id }
  return null
}

/**
 * Waits until a response is over that another process was told to end, and ends it in the database
 * where that process does not. Undefined: it is gone.
 */
export async function awaitEnd(
  find: () => Promise<FoundResponse | undefined>,
  actions: { tell: () => void; force: (found: FoundResponse) => Promise<boolean> },
): Promise<ResponseObject | undefined> {
  const begunAt = performance.now()
  for (let look = 0; performance.now() - begunAt < endWaitMaxMs; look++) {
    if (look % looksPerMessage === 0) actions.tell()
    await Bun.sleep(lookEveryMs)
    const found = await find()
    if (found === undefined || isOver(found.log.status)) return found?.object
    if (performance.now() - begunAt > forceAfterMs) await actions.force(found)
  }
  throw new AppError('service_unavailable', 'The response could not be ended yet.', {
    retryAfterS: 1,
  })
}

/** What another process began a moment ago may reach the database only now. */
export async function findSoon(
  store: Pick<ResponseStore, 'find'>,
  { ownerId, id }: { ownerId: string; id: string },
  waitMs: number,
): Promise<FoundResponse | undefined> {
  const found = await store.find(ownerId, id)
  if (found !== undefined || waitMs === 0) return found
  await Bun.sleep(waitMs)
  return store.find(ownerId, id)
}
