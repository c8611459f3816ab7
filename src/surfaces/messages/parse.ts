import type { Config } from '#config/schema.ts'
import { countChars } from '#inference/count-chars.ts'
import type { GenerationRequest, RequestOrigin, Sampling } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import type { Seals } from '#sealing/seals.ts'
import type { ThinkingDisplay } from './blocks/block.ts'
import { forwardedHeaders, parseCaller } from './caller.ts'
import { readDialect } from './dialect.ts'
import { parseMessages } from './parse-messages.ts'
import { parseOutput } from './parse-output.ts'
import { parseSystem } from './parse-system.ts'
import { parseThinkingOptions } from './parse-thinking-options.ts'
import { forcedTool, parseToolChoice } from './parse-tool-choice.ts'
import { parseTools } from './parse-tools.ts'
import { badField, createReader } from './read-object.ts'
import { countBody, messageBody, type PromptBody, samplingFields } from './schema.ts'

export type ParsedMessage = {
  request: GenerationRequest
  stream: boolean
  /** `max_tokens: 0`: the prompt is looked at, and nothing is generated. */
  generatesNothing: boolean
  thinkingDisplay: ThinkingDisplay
  /** What no upstream of another protocol gets: types of tools and blocks, an unknown version. */
  leftOut: readonly string[]
}

export type ParseContext = {
  limits: Pick<Config['limits'], 'inputCharsMax' | 'inputItemsMax' | 'toolsMax'>
  /** Of the caller. */
  seals: Seals
  headers: Headers
}

const readBody = createReader(messageBody)
const readCountBody = createReader(countBody)
const readSampling = createReader(samplingFields)

/**
 * The body of `POST /compat/v1/messages` as a request to a model. Numbers and booleans are never
 * read from texts, and unknown fields, headers and typed tools are no error.
 *
 * Throws an `AppError` whose message begins with the path of the first field at fault.
 */
export function parseCreateMessage(body: unknown, context: ParseContext): ParsedMessage {
  const create = readBody(body, '')
  refuseThread(create.thread)
  const dialect = readDialect(context.headers)
  const { prompt, thinkingDisplay, leftOut } = parsePrompt(create, context)
  const { unknownVersion } = dialect
  return {
    request: {
      ...prompt,
      sampling: {
        ...prompt.sampling,
        ...(dialect.takesSampling ? parseSampling(create) : {}),
        stopSequences: parseStopSequences(create.stop_sequences ?? []),
        maxOutputTokens: create.max_tokens === 0 ? null : create.max_tokens,
      },
      ...parseCaller(create.metadata, context.headers),
      serviceTier: parseServiceTier(create.service_tier),
      origin: originOf(body, context),
    },
    stream: create.stream ?? false,
    generatesNothing: create.max_tokens === 0,
    thinkingDisplay,
    leftOut: unknownVersion === null ? leftOut : [...leftOut, `version ${unknownVersion}`],
  }
}

/** The body of a request for a count of its tokens: what a model would be given. */
export function parseCountTokens(body: unknown, context: ParseContext): GenerationRequest {
  const { prompt } = parsePrompt(readCountBody(body, ''), context)
  return { ...prompt, origin: originOf(body, context) }
}

type ParsedPrompt = Pick<ParsedMessage, 'thinkingDisplay' | 'leftOut'> & {
  prompt: GenerationRequest
}

function parsePrompt(create: PromptBody, context: ParseContext): ParsedPrompt {
  const { limits, seals } = context
  const instructions = parseSystem(create.system)
  const conversation = parseMessages(create.messages, {
    seal: seals.reasoning,
    itemsMax: limits.inputItemsMax,
  })
  const { items, prefilled } = conversation
  const chars = countChars(items) + (instructions?.length ?? 0)
  if (chars > limits.inputCharsMax) throw inputTooLong(limits.inputCharsMax)
  const tools = parseTools(create.tools ?? [], {
    toolsMax: limits.toolsMax,
    messages: create.messages,
    forced: forcedTool(create.tool_choice),
  })
  const output = parseOutput(create.output_config, create.output_format)
  const thinking = parseThinkingOptions(create.thinking, {
    effort: output.effort,
    afterTools: items.at(-1)?.type === 'tool-result',
  })
  return {
    prompt: {
      model: create.model,
      instructions,
      items,
      ...(prefilled ? { prefilled } : {}),
      tools: tools.tools,
      ...parseToolChoice(create.tool_choice, tools),
      sampling: noSampling,
      format: output.format,
      verbosity: null,
      reasoning: thinking.reasoning,
      ...parseCaller(undefined, context.headers),
      serviceTier: null,
    },
    thinkingDisplay: thinking.display,
    leftOut: [...new Set([...tools.leftOut.map(({ type }) => type), ...conversation.leftOut])],
  }
}

function originOf(body: unknown, { headers, seals }: ParseContext): RequestOrigin {
  return {
    protocol: 'messages',
    body: isRecord(body) ? body : {},
    headers: forwardedHeaders(headers),
    openSeal: seals.reasoning.open,
  }
}

/**
 * A conversation that the server holds. SDKs ask for one unasked, know this code, and send all
 * messages instead.
 */
function refuseThread(thread: object | undefined): void {
  if (thread === undefined) return
  throw new AppError('invalid_request', 'thread: is not offered; send all messages each time', {
    param: 'thread',
    code: 'thread_unsupported_request',
  })
}

const noSampling: Sampling = {
  temperature: null,
  topP: null,
  topK: null,
  stopSequences: [],
  presencePenalty: null,
  frequencyPenalty: null,
  maxOutputTokens: null,
  topLogprobs: null,
}

function parseSampling(create: object): Partial<Sampling> {
  const { temperature = null, top_p: topP = null, top_k: topK = null } = readSampling(create, '')
  return { temperature, topP, topK }
}

/** Each of them is looked for in every piece of an answer. */
const stopSequencesMax = 64

function parseStopSequences(values: readonly unknown[]): readonly string[] {
  if (values.length > stopSequencesMax) {
    throw badField('stop_sequences', `must not hold more than ${stopSequencesMax} texts`)
  }
  return values.map((value, index) => {
    if (typeof value === 'string' && value !== '') return value
    throw badField(`stop_sequences.${index}`, 'must be a text that is not empty')
  })
}

function parseServiceTier(tier: string | undefined): string | null {
  if (tier === 'standard_only') return 'default'
  return tier === 'auto' ? tier : null
}

function inputTooLong(charsMax: number): AppError {
  return new AppError(
    'request_too_large',
    `The text of the messages is longer than ${charsMax} characters, which is the limit.`,
    { param: 'messages' },
  )
}
