import type { Steering } from '#inference/steering.ts'
import { toAppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { createLru } from '#lib/lru.ts'
import { parseContent } from '#surfaces/responses/parse-content.ts'
import { invalidField } from '#surfaces/responses/read-object.ts'
import type { WireResponse } from '#surfaces/responses/schema/response-object.ts'
import type {
  SteerAccepted,
  SteerErrorCode,
  SteerFailed,
  SteerPending,
} from '#surfaces/responses/schema/steer-events.ts'
import { type SteerFrame, withStreamId } from './frames.ts'
import { requiredInput } from './required-input.ts'

/** Accepted input of `response.steer`, until another response begins with it. */
export type Steer = {
  readonly id: string
  readonly responseId: string
  /** As it was sent; it is returned if no response gets it. */
  readonly input: unknown
  readonly messages: readonly JsonObject[]
  readonly chars: number
}

/** A response of this connection while it runs. */
export type SteerTarget = {
  readonly streamId: string | null
  readonly steering: Steering
  readonly body: JsonObject
  /** The number of its latest event. Steer events repeat it: they are no part of its stream. */
  sequence(): number
}

type Running = SteerTarget & { readonly steers: Steer[] }
type Waiting = Pick<SteerTarget, 'streamId' | 'sequence'> & { readonly steers: readonly Steer[] }

/** Accepted input per connection that no response has yet. */
const steersMax = 64
/** Ended responses per connection whose ids are known, to say why they cannot be steered. */
const endedMax = 256

/**
 * The input with which clients steer the running responses of one connection. An accepted input
 * interrupts its response; the input of the next response begins with it.
 */
export function createSteers({
  push,
  charsMax,
}: {
  push: (frame: string) => void
  /** Of all accepted input that no response has yet. */
  charsMax: number
}) {
  const running = new Map<string, Running>()
  /** By the response whose client has to act first. */
  const waiting = new Map<string, Waiting>()
  const ended = createLru<string, 'response_already_completed' | 'response_not_active'>(endedMax)
  let count = 0
  let chars = 0

  function send(event: SteerAccepted | SteerFailed | SteerPending, streamId: string | null): void {
    push(withStreamId(JSON.stringify(event), streamId))
  }

  function refuse({ responseId, input }: SteerFrame, code: SteerErrorCode, message: string): void {
    const target = running.get(responseId)
    send(
      failedEvent({ previous_response_id: responseId, input }, code, {
        message,
        sequence: target?.sequence() ?? 0,
      }),
      target?.streamId ?? null,
    )
  }

  function release(steers: readonly Steer[]): readonly Steer[] {
    count -= steers.length
    for (const steer of steers) chars -= steer.chars
    return steers
  }

  function fail(
    steers: readonly Steer[],
    { streamId, sequence }: Pick<SteerTarget, 'streamId' | 'sequence'>,
    [code, message]: readonly [code: SteerErrorCode, message: string],
  ): void {
    for (const { id, responseId, input } of release(steers)) {
      const steer = { id, previous_response_id: responseId, input }
      send(failedEvent(steer, code, { message, sequence: sequence() }), streamId)
    }
  }

  return {
    receive(frame: SteerFrame): void {
      const { responseId, input } = frame
      const target = running.get(responseId)
      if (target === undefined) {
        const code = ended.get(responseId) ?? 'response_not_found'
        refuse(frame, code, refusals[code])
        return
      }
      if (!isSteerable(target.body)) {
        refuse(frame, 'steering_not_supported', refusals.steering_not_supported)
        return
      }
      if (count >= steersMax || chars + frame.chars > charsMax) {
        refuse(frame, 'too_many_pending_steers', refusals.too_many_pending_steers)
        return
      }
      let messages: readonly JsonObject[]
      try {
        messages = parseSteerInput(input)
      } catch (error) {
        refuse(frame, 'invalid_input', toAppError(error).message)
        return
      }
      const id = newId('steer_')
      target.steers.push({ id, responseId, input, messages, chars: frame.chars })
      count++
      chars += frame.chars
      const steer = { id, previous_response_id: responseId }
      const sequence_number = target.sequence()
      send({ type: 'response.steer.accepted', sequence_number, steer }, target.streamId)
      target.steering.interrupt()
    },

    started(responseId: string, target: SteerTarget): void {
      running.set(responseId, { ...target, steers: [] })
    },

    /**
     * Returns the input with which another response has to begin now. If its client has to act first,
     * the input waits for the request that does; if the response failed, the input does too.
     */
    ended(responseId: string, { status, output }: WireResponse): readonly Steer[] {
      const target = running.get(responseId)
      running.delete(responseId)
      const isOver = status === 'completed' || status === 'incomplete'
      ended.set(responseId, isOver ? 'response_already_completed' : 'response_not_active')
      if (target === undefined || target.steers.length === 0) return []
      if (!isOver) {
        fail(target.steers, target, ['response_not_active', refusals.response_not_active])
        return []
      }
      const required = requiredInput(output)
      if (required.length === 0) return target.steers
      waiting.set(responseId, target)
      for (const { id } of target.steers) {
        send(
          {
            type: 'response.steer.pending',
            sequence_number: target.sequence(),
            steer: { id, previous_response_id: responseId },
            reason: 'waiting_for_required_input',
            required_input: required,
          },
          target.streamId,
        )
      }
      return []
    },

    /** The input that waits for a request that continues this response on its lane. */
    waitingFor(responseId: unknown, streamId: string | null): readonly Steer[] {
      const found = waiting.get(String(responseId))
      if (found === undefined || found.streamId !== streamId) return []
      waiting.delete(String(responseId))
      return found.steers
    },

    /** A response has begun with this input. */
    committed: (steers: readonly Steer[]) => void release(steers),

    /** The response that should have begun with this input did not begin. */
    notCommitted(steers: readonly Steer[], streamId: string | null, reason: string): void {
      fail(steers, { streamId, sequence: () => 0 }, ['successor_creation_failed', reason])
    },

    /** Returns all input that still waits to its client. */
    close(reason: string): void {
      for (const target of waiting.values()) {
        fail(target.steers, target, ['successor_creation_failed', reason])
      }
      waiting.clear()
    },
  }
}

const refusals = {
  response_not_found: 'No response with this id runs on this connection.',
  steering_not_supported:
    'Responses of a conversation, and with automatic compaction, cannot be steered.',
  too_many_pending_steers: 'Too much input waits on this connection.',
  response_already_completed: 'The response has ended; send the input in a new request.',
  response_not_active: 'The response failed or was cancelled; send the input in a new request.',
} as const satisfies Partial<Record<SteerErrorCode, string>>

function isSteerable({ conversation, context_management: management }: JsonObject): boolean {
  const compacts = Array.isArray(management) && management.length > 0
  return (conversation ?? null) === null && !compacts
}

/** The input as user messages; throws if it is anything else. */
function parseSteerInput(input: unknown): readonly JsonObject[] {
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input
  if (!Array.isArray(items) || items.length === 0) {
    throw invalidField('input', 'must be a string or a list of user messages')
  }
  return items.map((item: unknown, index) => {
    const path = `input[${index}]`
    const { type = 'message', role, content } = isRecord(item) ? item : {}
    if (type !== 'message' || role !== 'user') throw invalidField(path, 'must be a user message')
    const isContent = typeof content === 'string' || Array.isArray(content)
    if (!isContent || content.length === 0) {
      throw invalidField(`${path}.content`, 'must be a string or a list of parts, and not be empty')
    }
    if (parseContent(content, `${path}.content`).some((part) => part.type === 'refusal')) {
      throw invalidField(`${path}.content`, 'must not have a refusal')
    }
    return { type, role, content }
  })
}

function failedEvent(
  steer: SteerFailed['steer'],
  code: SteerErrorCode,
  { message, sequence }: { message: string; sequence: number },
): SteerFailed {
  const error = { type: 'invalid_request_error', code, message } as const
  return { type: 'response.steer.failed', sequence_number: sequence, steer, error }
}
