import type { EventBatch, FinishReason, GenerationEvent, Usage } from '#inference/events.ts'
import { assertNever } from '#lib/assert.ts'
import type { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { createFrameWriter, doneFrame, silentFrames } from './frames.ts'
import type { OutputItem } from './items/item.ts'
import { createItemList } from './items/item-list.ts'
import type { ResponseEcho } from './parse.ts'

/** The Response object: what is streamed at its start and end, and answered without streaming. */
type ResponseObject = ResponseEcho & {
  id: string
  object: 'response'
  created_at: number
  completed_at: number | null
  status: 'in_progress' | 'completed' | 'incomplete' | 'failed'
  output: readonly OutputItem[]
  error: { code: string; message: string; type: string; param: string | null } | null
  incomplete_details: { reason: IncompleteReason } | null
  usage: object | null
}

/** Turns events into the frames of one response, and into the object that they add up to. */
export type ResponseRenderer = {
  readonly id: string
  /** The frames of a batch; the first call opens the stream. */
  push(batch: EventBatch): string
  /** The two frames that open a stream, if they were not given out yet. */
  open(): string
  /** Frames that say that the stream is alive: the current state once more. */
  heartbeat(): string
  /** The frames of a failure that came without events. */
  fail(error: AppError): string
  /** The object as it stands; final after a terminal event. */
  result(): ResponseObject
}

/** The first two are words of the format, the last one is ours: the format has none for it. */
type IncompleteReason = 'max_output_tokens' | 'content_filter' | 'invalid_output'

type Ending = Pick<ResponseObject, 'status' | 'error' | 'incomplete_details' | 'usage'>

export function createResponseRenderer(options: {
  echo: ResponseEcho
  includeSealed: boolean
  /** Whether frames are wanted, or only the object at the end. */
  stream: boolean
  now: () => Date
}): ResponseRenderer {
  const id = newId('resp_')
  const createdAt = seconds(options.now())
  const frames = options.stream ? createFrameWriter() : silentFrames
  const items = createItemList(frames, options.includeSealed)
  let ending: Ending = { status: 'in_progress', error: null, incomplete_details: null, usage: null }
  let completedAt: number | null = null
  let opened = false

  const result = (): ResponseObject => ({
    id,
    object: 'response',
    created_at: createdAt,
    completed_at: completedAt,
    ...ending,
    output: items.output(),
    ...options.echo,
  })
  const lifecycle = (type: string) =>
    options.stream ? frames.frame(type, { response: result() }) : ''
  const open = () => {
    if (opened) return ''
    opened = true
    return lifecycle('response.created') + lifecycle('response.in_progress')
  }
  const close = (end: Ending) => {
    ending = end
    if (end.status === 'completed') completedAt = seconds(options.now())
    return `${lifecycle(`response.${end.status}`)}${doneFrame}`
  }
  const closeFailed = (error: AppError) =>
    frames.frame('error', errorFields(error)) +
    close({ status: 'failed', error: wireError(error), incomplete_details: null, usage: null })

  const render = (event: GenerationEvent): string => {
    if (event.type === 'generation-start') return ''
    if (event.type === 'finish') return close(endingOf(event.reason, event.usage))
    if (event.type === 'error') return closeFailed(event.error)
    return items.push(event)
  }

  return {
    id,
    push(batch) {
      let written = opened ? '' : open()
      for (const event of batch) written += render(event)
      return written
    },
    open,
    heartbeat: () => lifecycle('response.in_progress'),
    fail: (error) => open() + closeFailed(error),
    result,
  }
}

function endingOf(reason: FinishReason, usage: Usage | null): Ending {
  const counted = usage === null ? null : renderUsage(usage)
  switch (reason) {
    case 'stop':
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

function incomplete(reason: IncompleteReason, usage: object | null): Ending {
  return { status: 'incomplete', error: null, incomplete_details: { reason }, usage }
}

function renderUsage(usage: Usage): object {
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

function wireError({ wireCode, message, type, param }: AppError) {
  return { code: wireCode, message, type, param }
}

/** Flat for the types of the OpenAI SDKs, nested for their code and for the Open Responses suite. */
function errorFields(error: AppError): object {
  const { code, message, param, type } = wireError(error)
  return { code, message, param, error: { type, code, message, param } }
}

function seconds(date: Date): number {
  return Math.floor(date.getTime() / 1000)
}
