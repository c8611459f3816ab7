import { quote } from '#api/read-object.ts'
import type { Config } from '#config/schema.ts'
import { readJsonText } from '#http/body.ts'
import { renderError } from '#http/error-envelope.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { invalidField } from '#surfaces/responses/read-object.ts'
import type { Steer } from './steers.ts'

/** A frame of the client. `streamId` is the client's name for the request; its events repeat it. */
export type ClientFrame = { readonly streamId: string | null } & (
  | ({ readonly kind: 'create' } & CreateFrame)
  | ({ readonly kind: 'steer' } & SteerFrame)
  | { readonly kind: 'ignored' }
  | { readonly kind: 'invalid'; readonly error: AppError }
)

/** `response.create`: the body of a POST, and the length of its frame. */
export type CreateFrame = {
  readonly body: JsonObject
  readonly streamId: string | null
  readonly chars: number
  /** Of a response that the server starts by itself: the input that steers it. */
  readonly steers?: readonly Steer[]
}

/** `response.steer`: further input for the response with this id. */
export type SteerFrame = {
  readonly responseId: string
  /** As it was sent. */
  readonly input: unknown
  readonly chars: number
}

type FrameLimits = Pick<Config['limits'], 'jsonDepthMax'>

/** The format's rule; every frame of the response repeats it, so it must be short. */
const streamIdPattern = /^[A-Za-z0-9_.-]{1,256}$/

/** Never throws: an invalid frame is answered with an error, and the connection stays open. */
export function readClientFrame(message: string | Uint8Array, limits: FrameLimits): ClientFrame {
  let streamId: string | null = null
  try {
    const fields = readFields(message, limits)
    if (fields['type'] === 'response.steer') {
      return { streamId, kind: 'steer', ...readSteer(fields, message.length) }
    }
    streamId = readStreamId(fields['stream_id'])
    return { streamId, ...readRequest(fields, message.length) }
  } catch (error) {
    return { kind: 'invalid', error: toAppError(error), streamId }
  }
}

function readFields(message: string | Uint8Array, limits: FrameLimits): JsonObject {
  if (typeof message !== 'string') {
    throw new AppError('invalid_request', 'Binary frames are not supported; send text frames.')
  }
  const value = readJsonText(message, limits, 'The frame')
  if (isRecord(value)) return value
  throw new AppError('invalid_request', 'The frame must be a JSON object.')
}

function readStreamId(value: unknown = null): string | null {
  if (value === null) return null
  if (typeof value === 'string' && streamIdPattern.test(value)) return value
  throw new AppError(
    'invalid_request',
    'stream_id must be 1 to 256 letters, digits, underscores, hyphens and periods.',
    { code: 'invalid_stream_id', param: 'stream_id' },
  )
}

/** Its stream is that of its response; a `stream_id` is ignored. */
function readSteer(fields: JsonObject, chars: number): SteerFrame {
  const { previous_response_id: responseId, input } = fields
  if (typeof responseId !== 'string' || responseId === '') {
    throw invalidField('previous_response_id', 'must be the id of a response on this connection')
  }
  if (input !== undefined) return { responseId, input, chars }
  throw invalidField('input', 'is required')
}

function readRequest(fields: JsonObject, chars: number) {
  // Every response of a connection is streamed; some clients ask for it nevertheless.
  const { type, stream: _, stream_options: __, stream_id: ___, ...body } = fields
  switch (type) {
    case 'response.create':
      return { kind: 'create' as const, body, chars }
    case 'response.processed':
      return { kind: 'ignored' as const }
    case 'response.cancel':
      throw invalidType(
        'Cancel a stored response by POST; an unstored one ends when its connection closes.',
      )
    default:
      throw invalidType(
        typeof type === 'string'
          ? `Unknown frame type ${quote(type)}; send response.create.`
          : 'The frame has no type; send response.create.',
      )
  }
}

function invalidType(message: string): AppError {
  return new AppError('invalid_request', message, { param: 'type' })
}

/** How the events of a response ended: null before the terminal event. */
export type EventEnding = 'ended' | 'failed' | null

export type ServerFrames = { readonly frames: string[]; readonly ending: EventEnding }

const dataMark = '\ndata: '
const endings: readonly (readonly [head: string, ending: EventEnding])[] = [
  ['event: response.completed\n', 'ended'],
  ['event: response.incomplete\n', 'ended'],
  ['event: response.failed\n', 'failed'],
]

/** Converts server-sent events to socket frames: each is the JSON of one event, with its type. */
export function toServerFrames(events: string, streamId: string | null): ServerFrames {
  const frames: string[] = []
  let ending: EventEnding = null
  for (let at = 0; at < events.length; ) {
    const data = events.indexOf(dataMark, at)
    const end = events.indexOf('\n\n', data)
    if (data === -1 || end === -1) throw new Error('incomplete server-sent event')
    frames.push(withStreamId(events.slice(data + dataMark.length, end), streamId))
    ending = endings.find(([head]) => events.startsWith(head, at))?.[1] ?? ending
    at = end + 2
  }
  return { frames, ending }
}

/** The frame of a failure before the first event of a response, or without a request. */
export function errorFrame(error: AppError, streamId: string | null): string {
  return withStreamId(
    JSON.stringify({ type: 'error', status: error.status, ...renderError(error) }),
    streamId,
  )
}

/** `json` is an object with at least one field. */
export function withStreamId(json: string, streamId: string | null): string {
  return streamId === null ? json : `${json.slice(0, -1)},"stream_id":${JSON.stringify(streamId)}}`
}
