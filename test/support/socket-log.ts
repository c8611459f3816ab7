import { expect } from 'bun:test'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { serverFrame } from '#surfaces/responses/websocket.ts'
import { checkDescribed } from './described-shapes.ts'
import { readTurn } from './socket-client.ts'

/** What a client received over one WebSocket with several streams. */
export type SocketLog = {
  /** In the order in which they began. */
  readonly responses: readonly LoggedResponse[]
  /** By their id. */
  readonly steers: ReadonlyMap<string, LoggedSteer>
  /** Of input that was not accepted. */
  readonly refusedSteers: readonly JsonObject[]
  /** Error frames. */
  readonly refusals: readonly JsonObject[]
}

type LoggedResponse = {
  readonly id: string
  readonly streamId: string | null
  readonly events: readonly JsonObject[]
  /** Of the last event; undefined while it runs. */
  readonly response: JsonObject | undefined
}

type LoggedSteer = {
  readonly responseId: string
  /** The events about it, in order. */
  readonly events: readonly JsonObject[]
}

const terminal = /^response\.(completed|incomplete|failed)$/

/**
 * Validates what a client received: each response like one stream, responses of a stream one after the
 * other, and the order of the events about steering.
 */
export async function checkSocketLog(texts: readonly string[]): Promise<SocketLog> {
  const open = new Map<string | null, string[]>()
  const ended = new Set<string>()
  const responses: LoggedResponse[] = []
  const steers = new Map<string, { responseId: string; events: JsonObject[] }>()
  const refusedSteers: JsonObject[] = []
  const refusals: JsonObject[] = []
  for (const text of texts) {
    const event = asRecord(JSON.parse(text))
    const type = String(event['type'])
    const streamId = typeof event['stream_id'] === 'string' ? event['stream_id'] : null
    if (type === 'error' && 'status' in event) {
      refusals.push(event)
    } else if (type.startsWith('response.steer.')) {
      checkDescribed(serverFrame, event)
      addSteer(event, { steers, refusedSteers, ended })
    } else {
      const running = open.get(streamId)
      if (type === 'response.created') {
        expect(running, `one response at a time on ${streamId}`).toBeUndefined()
        open.set(streamId, [text])
        continue
      }
      expect(running, `${type} belongs to a response`).toBeDefined()
      running?.push(text)
      if (!terminal.test(type) || running === undefined) continue
      open.delete(streamId)
      const { events, response } = await readTurn(running)
      const id = String(response?.['id'])
      ended.add(id)
      responses.push({ id, streamId, events, response })
    }
  }
  for (const [streamId, running] of open) {
    const events = running.map((text) => asRecord(JSON.parse(text)))
    const id = String(asRecord(events[0]?.['response'])['id'])
    responses.push({ id, streamId, events, response: undefined })
  }
  return { responses, steers, refusedSteers, refusals }
}

/** Accepted once; then pending at most once, after its response; failed at most once, at the end. */
function addSteer(
  event: JsonObject,
  log: {
    steers: Map<string, { responseId: string; events: JsonObject[] }>
    refusedSteers: JsonObject[]
    ended: ReadonlySet<string>
  },
): void {
  const type = event['type']
  const { id, previous_response_id: target } = asRecord(event['steer'])
  const responseId = String(target)
  if (typeof id !== 'string') {
    expect(type).toBe('response.steer.failed')
    log.refusedSteers.push(event)
    return
  }
  const steer = log.steers.get(id)
  if (type === 'response.steer.accepted') {
    expect(steer, 'accepted once').toBeUndefined()
    expect(log.ended.has(responseId), 'accepted while its response runs').toBe(false)
    log.steers.set(id, { responseId, events: [event] })
    return
  }
  expect(steer?.responseId, 'accepted before').toBe(responseId)
  expect(log.ended.has(responseId), `${type} after its response`).toBe(true)
  const before = steer?.events.at(-1)?.['type']
  expect(before).toBeOneOf(
    type === 'response.steer.pending'
      ? ['response.steer.accepted']
      : ['response.steer.accepted', 'response.steer.pending'],
  )
  steer?.events.push(event)
}

/** The texts of the messages of a chat request, with their roles. */
export function chatPrompt(body: string): string[] {
  const { messages } = JSON.parse(body)
  return messages.map((message: unknown) => {
    const { role, content } = asRecord(message)
    const parts = Array.isArray(content) ? content : [{ text: content }]
    return `${role}: ${parts.map((part) => (isRecord(part) ? part['text'] : '')).join('')}`
  })
}
