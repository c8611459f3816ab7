import { toLine } from '#http/frame-text.ts'
import type { EventBatch, FinishReason, GenerationEvent, Usage } from '#inference/events.ts'
import type { ToolName } from '#inference/request.ts'
import type { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { FrameRenderer } from '#responses/runs.ts'
import { notStoredCode } from '#responses/unstored.ts'
import type { ReasoningSeal } from '#sealing/seals.ts'
import { FrameWriter } from './frames.ts'
import type { ItemForm } from './items/item.ts'
import { ItemWriter } from './items/item-writer.ts'
import type { ResponseEcho } from './schema/request.ts'
import type { ResponseUsage, WireResponse } from './schema/response-object.ts'

/** The format defines them; only `invalid_output` is an extension. */
type IncompleteReason = NonNullable<WireResponse['incomplete_details']>['reason']

type Ending = Pick<
  WireResponse,
  'status' | 'error' | 'incomplete_details' | 'usage' | 'completed_at'
>

export type RendererOptions = {
  id: string
  createdAt: Date
  echo: ResponseEcho
  includeSealed: boolean
  includeSearchResults: readonly string[]
  reasoningSeal: ReasoningSeal
  /** Of the request. */
  asyncTools?: readonly ToolName[]
  /** Whether to write frames, or only the final object. */
  stream: boolean
  /** The number of frames written while the response was queued. */
  framesBefore: number
  now: () => Date
}

/**
 * Renders events as the frames of one response, and as the object that they add up to. A class, because
 * each response has one.
 */
export class ResponseRenderer extends ItemWriter implements FrameRenderer {
  readonly #options: RendererOptions
  #echo: ResponseEcho
  #ending: Ending = openEnding
  /** Fields of the upstream's own response. */
  #reported: JsonObject | null = null
  #isOpened = false
  #terminalAt = 0

  constructor(options: RendererOptions) {
    super(options, options.framesBefore, { isSilent: !options.stream })
    this.#options = options
    this.#echo = options.echo
  }

  push(batch: EventBatch): string {
    let written = this.open()
    for (const event of batch) written += this.#render(event)
    return written
  }

  open(): string {
    if (this.#isOpened) return ''
    this.#isOpened = true
    if (this.isSilent) return ''
    // Instructions and tools in it may be long.
    const response = toLine(this.result())
    const isFirst = this.#options.framesBefore === 0
    const created = isFirst ? this.lifecycle('response.created', response) : ''
    return created + this.lifecycle('response.in_progress', response)
  }

  heartbeat(): string {
    return this.#lifecycle('response.in_progress')
  }

  fail(error: AppError): string {
    return this.open() + this.cutItem() + this.#closeFailed(error)
  }

  cancel(): string {
    return this.open() + this.cutItem() + this.#close({ ...openEnding, status: 'cancelled' })
  }

  unstored(): string {
    this.#echo = { ...this.#echo, store: false }
    this.rewind(this.#terminalAt)
    return this.#terminal({ warning: notStoredWarning })
  }

  /** The response as the client sees it; final after a terminal event. */
  result(): WireResponse {
    return this.#object('shown')
  }

  stored(): WireResponse {
    return this.#object('stored')
  }

  #object(form: ItemForm): WireResponse {
    const output = this.items(form)
    const response = responseObject(this.#options, this.#ending, output, this.#echo)
    return this.#reported === null ? response : { ...response, ...this.#reported }
  }

  #render(event: GenerationEvent): string {
    if (event.type === 'generation-start') return ''
    if (event.type === 'finish') {
      this.#reported = event.reported ?? null
      return this.#close(endingOf(event.reason, event.usage))
    }
    if (event.type === 'error') return this.#closeFailed(event.error)
    return this.pushItem(event)
  }

  #closeFailed(error: AppError): string {
    return this.#close({ ...openEnding, status: 'failed', error: wireError(error) })
  }

  #close(ending: Ending): string {
    const { now } = this.#options
    const completedAt = ending.status === 'completed' ? unixSeconds(now()) : null
    this.#ending = { ...ending, completed_at: completedAt }
    this.#terminalAt = this.nextSequence()
    return this.#terminal()
  }

  #terminal(fields?: object): string {
    const { error, status } = this.#ending
    const errorFrame = error === null ? '' : this.frame('error', errorFields(error))
    // The format has no event for cancelled responses, whose output is incomplete.
    const name = status === 'cancelled' ? 'incomplete' : status
    return errorFrame + this.#lifecycle(`response.${name}`, fields)
  }

  #lifecycle(type: string, fields?: object): string {
    if (this.isSilent) return ''
    return this.lifecycle(type, toLine(this.result()), fields)
  }
}

/** A field, because strict clients fail on unknown events. Its first event promised storage. */
export const notStoredWarning = {
  code: notStoredCode,
  message: 'The response could not be stored, so it cannot be retrieved or continued later.',
}

const openEnding: Ending = {
  status: 'in_progress',
  error: null,
  incomplete_details: null,
  usage: null,
  completed_at: null,
}

/** A queued response, and its first frames. */
export function renderQueued(options: Pick<RendererOptions, 'id' | 'createdAt' | 'echo'>): {
  object: WireResponse
  frames: string
  count: number
} {
  const ending: Ending = { ...openEnding, status: 'queued' }
  const object = responseObject(options, ending, [], options.echo)
  const writer = new FrameWriter()
  const frames =
    writer.frame('response.created', { response: object }) +
    writer.frame('response.queued', { response: object })
  return { object, frames, count: writer.nextSequence() }
}

/** Each field by its name: spreading several objects costs as much as rendering their text. */
function responseObject(
  { id, createdAt }: Pick<RendererOptions, 'id' | 'createdAt'>,
  { status, error, incomplete_details, usage, completed_at }: Ending,
  output: WireResponse['output'],
  echo: ResponseEcho,
): WireResponse {
  return {
    id,
    object: 'response',
    created_at: unixSeconds(createdAt),
    status,
    error,
    incomplete_details,
    usage,
    completed_at,
    output,
    ...echo,
  }
}

/** Null: the response is complete. */
const incompleteReasons: Readonly<Record<FinishReason, IncompleteReason | null>> = {
  stop: null,
  'stop-sequence': null,
  'tool-calls': null,
  length: 'max_output_tokens',
  'content-filter': 'content_filter',
  'invalid-output': 'invalid_output',
  steered: 'steered',
}

function endingOf(finish: FinishReason, usage: Usage | null): Ending {
  const reason = incompleteReasons[finish]
  return {
    ...openEnding,
    status: reason === null ? 'completed' : 'incomplete',
    incomplete_details: reason === null ? null : { reason },
    usage: usage === null ? null : renderUsage(usage),
  }
}

export function renderUsage(usage: Usage): ResponseUsage {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: {
      cached_tokens: usage.cachedTokens,
      cache_write_tokens: usage.cacheWriteTokens,
    },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.totalTokens,
  }
}

type WireError = NonNullable<WireResponse['error']>

function wireError({ wireCode, message, type, param }: AppError): WireError {
  return { code: wireCode, message, type, param }
}

/** Flat for the types of the OpenAI SDKs, nested for their code and for Open Responses. */
function errorFields({ code, message, param, type }: WireError): object {
  return { code, message, param, error: { type, code, message, param } }
}

/** The last frames of a response whose worker died, or that was cancelled while queued. */
export function renderTerminalFrames(object: object, sequence: number): string {
  const writer = new FrameWriter(sequence)
  const status = 'status' in object && object.status === 'cancelled' ? 'cancelled' : 'failed'
  return renderEnd({ ...object, status }, writer)
}

/** The last frames of an ended response. */
export function renderEnd(response: { readonly status: string }, writer: FrameWriter): string {
  const { status } = response
  if (status !== 'failed') {
    return writer.frame(`response.${status === 'cancelled' ? 'incomplete' : status}`, { response })
  }
  const error = 'error' in response && isWireError(response.error) ? response.error : lostError
  return writer.frame('error', errorFields(error)) + writer.frame('response.failed', { response })
}

const lostError: WireError = {
  code: 'server_error',
  message: 'The response ended unexpectedly.',
  type: 'server_error',
  param: null,
}

function isWireError(value: unknown): value is WireError {
  return typeof value === 'object' && value !== null && 'code' in value && 'message' in value
}
