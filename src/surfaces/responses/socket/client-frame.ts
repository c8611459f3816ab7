import type { Config } from '#config/schema.ts'
import { readJsonText } from '#http/body.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { quote } from '#surfaces/read-object.ts'
import { badField } from '#surfaces/responses/read-object.ts'

/** What a client sends over its connection; `streamId` is its own name for what it asks. */
export type ClientFrame = { readonly streamId: string | null } & (
  | ({ readonly asks: 'turn' } & AskedTurn)
  | { readonly asks: 'nothing' }
  | { readonly asks: 'too much'; readonly error: AppError }
)

/** A request for a response: the body of a POST, as long as its frame. */
export type AskedTurn = {
  readonly body: JsonObject
  readonly streamId: string | null
  readonly chars: number
}

type FrameLimits = Pick<Config['limits'], 'jsonDepthMax'>

/** It stands on every frame of its turn, so it must be short. */
const streamIdCharsMax = 256

/** Never throws: what cannot be followed is answered, and the connection stays. */
export function readClientFrame(message: string | Uint8Array, limits: FrameLimits): ClientFrame {
  let streamId: string | null = null
  try {
    const fields = readFields(message, limits)
    streamId = readStreamId(fields['stream_id'])
    return { streamId, ...readRequest(fields, message.length) }
  } catch (error) {
    return { asks: 'too much', error: toAppError(error), streamId }
  }
}

function readFields(message: string | Uint8Array, limits: FrameLimits): JsonObject {
  if (typeof message !== 'string') {
    throw new AppError('invalid_request', 'Send text frames; binary ones are not understood.')
  }
  const value = readJsonText(message, limits, 'The frame')
  if (isRecord(value)) return value
  throw new AppError('invalid_request', 'The frame must be a JSON object.')
}

function readStreamId(value: unknown = null): string | null {
  if (value === null) return null
  if (typeof value === 'string' && value.length <= streamIdCharsMax) return value
  throw badField('stream_id', `must be a text of at most ${streamIdCharsMax} characters`)
}

function readRequest(fields: JsonObject, chars: number) {
  // Every turn of a connection is streamed, and some clients say so.
  const { type, stream: _, stream_options: __, stream_id: ___, ...body } = fields
  switch (type) {
    case 'response.create':
      return { asks: 'turn' as const, body, chars }
    case 'response.processed':
      return { asks: 'nothing' as const }
    case 'response.cancel':
      throw badType('A response is cancelled by POST, or by closing its connection if not stored.')
    case 'response.steer':
      throw badType('A response that runs cannot be steered; ask again when it is over.')
    default:
      throw badType(
        typeof type === 'string'
          ? `There is no frame of type ${quote(type)}; send response.create.`
          : 'The frame must have a type; send response.create.',
      )
  }
}

function badType(sentence: string): AppError {
  return new AppError('invalid_request', sentence, { param: 'type' })
}
