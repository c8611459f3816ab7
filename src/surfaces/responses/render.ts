import type { FinishReason, GenerationEvent, Usage } from '#inference/events.ts'
import { assertNever } from '#lib/assert.ts'
import type { AppError } from '#lib/errors.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { ResponseStatus } from '#responses/response.ts'
import type { FrameRenderer } from '#responses/runs.ts'
import type { ReasoningSeal } from '#sealing/reasoning.ts'
import { FrameWriter, silentFrames } from './frames.ts'
import type { OutputItem } from './items/item.ts'
import { ItemList } from './items/item-list.ts'
import type { ResponseEcho } from './parse.ts'

/** The Response object: what is streamed at its start and end, and answered without streaming. */
export type RenderedResponse = ResponseEcho & {
  id: string
  object: 'response'
  created_at: number
  completed_at: number | null
  status: ResponseStatus
  output: readonly OutputItem[]
  error: { code: string; message: string; type: string; param: string | null } | null
  incomplete_details: { reason: IncompleteReason } | null
  usage: object | null
}

/** Turns events into the frames of one response, and into the object that they add up to. */
export type ResponseRenderer = FrameRenderer & {
  /** The object as its caller gets to see it; final after a terminal event. */
  result(): RenderedResponse
}

/** The first two are words of the format, the last one is ours: the format has none for it. */
type IncompleteReason = 'max_output_tokens' | 'content_filter' | 'invalid_output'

type Ending = Pick<
  RenderedResponse,
  'status' | 'error' | 'incomplete_details' | 'usage' | 'completed_at'
>

export type RendererOptions = {
  id: string
  createdAt: Date
  echo: ResponseEcho
  includeSealed: boolean
  includeSearchResults: boolean
  reasoningSeal: ReasoningSeal
  /** Whether frames are wanted, or only the object at the end. */
  stream: boolean
  /** Frames that told of the response before it began: `created` and `queued`. */
  framesBefore: number
  now: () => Date
}

export function createResponseRenderer(options: RendererOptions): ResponseRenderer {
  const frames = options.stream ? new FrameWriter(options.framesBefore) : silentFrames
  const items = new ItemList({ ...options, frames })
  const echo = { ...options.echo }
  let ending: Ending = openEnding
  let openedAlready = false
  let terminalAt = 0

  const result = (form: 'shown' | 'stored' = 'shown'): RenderedResponse => ({
    ...responseHead(options),
    ...ending,
    output: items.output(form),
    ...echo,
  })
  const lifecycle = (type: string) =>
    options.stream ? frames.frame(type, { response: result() }) : ''
  const open = () => {
    if (openedAlready) return ''
    openedAlready = true
    const created = options.framesBefore === 0 ? lifecycle('response.created') : ''
    return created + lifecycle('response.in_progress')
  }
  const terminal = () => {
    const { error, status } = ending
    const told = error === null ? '' : frames.frame('error', errorFields(error))
    // The format has no event for a response that was cancelled: its output stays incomplete.
    return told + lifecycle(`response.${status === 'cancelled' ? 'incomplete' : status}`)
  }
  const close = (end: Omit<Ending, 'completed_at'>) => {
    const completedAt = end.status === 'completed' ? unixSeconds(options.now()) : null
    ending = { ...end, completed_at: completedAt }
    terminalAt = frames.next()
    return terminal()
  }
  const closeFailed = (error: AppError) =>
    close({ status: 'failed', error: wireError(error), incomplete_details: null, usage: null })

  const render = (event: GenerationEvent): string => {
    if (event.type === 'generation-start') return ''
    if (event.type === 'finish') return close(endingOf(event.reason, event.usage))
    if (event.type === 'error') return closeFailed(event.error)
    return items.push(event)
  }

  return {
    push(batch) {
      let written = openedAlready ? '' : open()
      for (const event of batch) written += render(event)
      return written
    },
    open,
    heartbeat: () => lifecycle('response.in_progress'),
    fail: (error) => open() + items.cut() + closeFailed(error),
    cancel: () =>
      open() +
      items.cut() +
      close({ status: 'cancelled', error: null, incomplete_details: null, usage: null }),
    unstored() {
      echo.store = false
      frames.rewind(terminalAt)
      return terminal()
    },
    nextSequence: () => frames.next(),
    result,
    stored: () => result('stored'),
  }
}

const openEnding: Ending = {
  status: 'in_progress',
  error: null,
  incomplete_details: null,
  usage: null,
  completed_at: null,
}

/** A response that waits for its turn, and the frames that tell so. */
export function renderQueued(options: Pick<RendererOptions, 'id' | 'createdAt' | 'echo'>): {
  object: RenderedResponse
  frames: string
  count: number
} {
  const object: RenderedResponse = {
    ...responseHead(options),
    ...openEnding,
    status: 'queued',
    output: [],
    ...options.echo,
  }
  const writer = new FrameWriter()
  const frames =
    writer.frame('response.created', { response: object }) +
    writer.frame('response.queued', { response: object })
  return { object, frames, count: writer.next() }
}

function responseHead({ id, createdAt }: Pick<RendererOptions, 'id' | 'createdAt'>) {
  return { id, object: 'response' as const, created_at: unixSeconds(createdAt) }
}

function endingOf(reason: FinishReason, usage: Usage | null): Omit<Ending, 'completed_at'> {
  const counted = usage === null ? null : renderUsage(usage)
  switch (reason) {
    case 'stop':
    case 'stop-sequence':
    case 'tool-calls':
      return { status: 'completed', error: null, incomplete_details: null, usage: counted }
    case 'length':
      return incomplete('max_output_tokens', counted)
    case 'content-filter':
      return incomplete('content_filter', counted)
    case 'invalid-output':
      return incomplete('invalid_output', counted)
    default:
      return assertNever(reason)
  }
}

function incomplete(reason: IncompleteReason, usage: object | null): Omit<Ending, 'completed_at'> {
  return { status: 'incomplete', error: null, incomplete_details: { reason }, usage }
}

export function renderUsage(usage: Usage): object {
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

type WireError = NonNullable<RenderedResponse['error']>

function wireError({ wireCode, message, type, param }: AppError): WireError {
  return { code: wireCode, message, type, param }
}

/** Flat for the types of the OpenAI SDKs, nested for their code and for the Open Responses suite. */
function errorFields({ code, message, param, type }: WireError): object {
  return { code, message, param, error: { type, code, message, param } }
}

/** The end of a response that was lost with its worker, or cancelled before it ran. */
export function renderTerminalFrames(object: object, sequence: number): string {
  const writer = new FrameWriter(sequence)
  if ('status' in object && object.status === 'cancelled') {
    return writer.frame('response.incomplete', { response: object })
  }
  const error = 'error' in object && isWireError(object.error) ? object.error : lostError
  return (
    writer.frame('error', errorFields(error)) +
    writer.frame('response.failed', { response: object })
  )
}

const lostError: WireError = {
  code: 'server_error',
  message: 'The response ended without a reason.',
  type: 'server_error',
  param: null,
}

function isWireError(value: unknown): value is WireError {
  return typeof value === 'object' && value !== null && 'code' in value && 'message' in value
}
