import type { Config } from '#config/schema.ts'
import {
  defaultOptions,
  type GenerationRequest,
  type OutputFormat,
  type RequestOrigin,
  type Sampling,
} from '#inference/request.ts'
import { countChars } from '#inference/token-estimate.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { findSchemaFault } from '#lib/json-schema.ts'
import type { Seals } from '#sealing/seals.ts'
import type { ThinkingDisplay } from './message.ts'
import { parseTexts } from './parse-content.ts'
import { parseMessages } from './parse-messages.ts'
import { parseThinkingOptions } from './parse-thinking.ts'
import { forcedTool, parseToolChoice, parseTools } from './parse-tools.ts'
import { invalidField, readObject, readType } from './read-object.ts'
import { forwardedHeaders, parseEndUser, readDialect } from './request-headers.ts'
import {
  countBody,
  messageBody,
  outputConfig,
  type PromptBody,
  samplingFields,
  schemaFormat,
} from './schema/request.ts'

export type ParsedMessage = {
  request: GenerationRequest
  stream: boolean
  /** `max_tokens: 0`: the request is validated, and nothing is generated. */
  isPromptOnly: boolean
  thinkingDisplay: ThinkingDisplay
  /** Ignored by upstreams of other protocols: types of tools and blocks, an unknown version. */
  ignored: readonly string[]
}

export type ParseContext = {
  limits: Pick<Config['limits'], 'inputCharsMax' | 'inputItemsMax' | 'toolsMax'>
  /** Of the principal. */
  seals: Seals
  headers: Headers
}

/**
 * Parses the body of `POST /compat/v1/messages` into a request to a model. Strings are never converted
 * to numbers or booleans; unknown fields, headers and typed tools are ignored.
 *
 * Throws an `AppError` whose message begins with the path of the first invalid field.
 */
export function parseCreateMessage(body: unknown, context: ParseContext): ParsedMessage {
  refuseThread(body)
  const create = readObject(messageBody, body, '')
  const dialect = readDialect(context.headers)
  const { prompt, thinkingDisplay, ignored } = parsePrompt(create, context)
  const { unknownVersion } = dialect
  return {
    request: {
      ...prompt,
      sampling: {
        ...prompt.sampling,
        ...(dialect.hasSampling ? parseSampling(create) : {}),
        stopSequences: parseStopSequences(create.stop_sequences ?? []),
        maxOutputTokens: create.max_tokens === 0 ? null : create.max_tokens,
      },
      ...parseEndUser(create.metadata, context.headers),
      serviceTier: parseServiceTier(create.service_tier),
      origin: originOf(body, context),
    },
    stream: create.stream ?? false,
    isPromptOnly: create.max_tokens === 0,
    thinkingDisplay,
    ignored: unknownVersion === null ? ignored : [...ignored, `version ${unknownVersion}`],
  }
}

/** Parses the body of a token count: the request that the model would get. */
export function parseCountTokens(body: unknown, context: ParseContext): GenerationRequest {
  const { prompt } = parsePrompt(readObject(countBody, body, ''), context)
  return { ...prompt, origin: originOf(body, context) }
}

type ParsedPrompt = Pick<ParsedMessage, 'thinkingDisplay' | 'ignored'> & {
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
  const output = parseOutput(create)
  const thinking = parseThinkingOptions(create.thinking, {
    effort: output.effort,
    afterTools: items.at(-1)?.type === 'tool-result',
  })
  return {
    prompt: {
      ...defaultOptions,
      model: create.model,
      instructions,
      items,
      ...(prefilled ? { prefilled } : {}),
      tools: tools.tools,
      ...parseToolChoice(create.tool_choice, tools),
      format: output.format,
      reasoning: thinking.reasoning,
      ...parseEndUser(undefined, context.headers),
    },
    thinkingDisplay: thinking.display,
    ignored: [...new Set([...tools.ignored.map(({ type }) => type), ...conversation.ignored])],
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
 * Refuses conversations that are stored on the server. SDKs request them by default, know this code,
 * and then send all messages.
 */
function refuseThread(body: unknown): void {
  if (!isRecord(body) || (body['thread'] ?? null) === null) return
  throw new AppError('invalid_request', 'thread: is not supported; send all messages each time', {
    param: 'thread',
    code: 'thread_unsupported_request',
  })
}

function parseSampling(create: object): Partial<Sampling> {
  const {
    temperature = null,
    top_p: topP = null,
    top_k: topK = null,
  } = readObject(samplingFields, create, '')
  return { temperature, topP, topK }
}

function parseStopSequences(values: readonly unknown[]): readonly string[] {
  return values.map((value, index) => {
    if (typeof value === 'string' && value !== '') return value
    throw invalidField(`stop_sequences.${index}`, 'must be a non-empty string')
  })
}

function parseServiceTier(tier: string | undefined): string | null {
  if (tier === 'standard_only') return 'default'
  return tier === 'auto' ? tier : null
}

function inputTooLong(charsMax: number): AppError {
  return new AppError(
    'request_too_large',
    `The text of the messages exceeds the limit of ${charsMax} characters.`,
    { param: 'messages' },
  )
}

/**
 * A coding client puts this note for its vendor's accounting before its system prompt. It changes with
 * each request, so a prompt that begins with it could not be cached.
 */
const billingNote = 'x-anthropic-billing-header:'

/** Joins `system` to one text; null if it is empty. */
function parseSystem(system: string | readonly unknown[] | undefined): string | null {
  if (system === undefined) return null
  const texts = parseTexts(typeof system === 'string' ? system : system.map(withoutNote), 'system')
  return texts.length === 0 ? null : texts.join('\n\n')
}

/** Replaces the note by an empty text, so that the paths of the other blocks stay correct. */
function withoutNote(block: unknown): unknown {
  const text = isRecord(block) ? block['text'] : null
  const isNote = typeof text === 'string' && text.startsWith(billingNote)
  return isNote ? { type: 'text', text: '' } : block
}

type ParsedOutput = { effort: string | null; format: OutputFormat }

/** Parses `output_config`, or its predecessor `output_format`. */
function parseOutput({
  output_config: config,
  output_format: deprecated,
}: PromptBody): ParsedOutput {
  const { effort = null, format } = readObject(outputConfig, config ?? {}, 'output_config')
  if (format !== undefined) return { effort, format: parseFormat(format, 'output_config.format') }
  return { effort, format: parseFormat(deprecated, 'output_format') }
}

/** The protocol has no name for a schema, but upstreams require one. */
const schemaName = 'answer'

function parseFormat(format: JsonObject | undefined, path: string): OutputFormat {
  if (format === undefined) return { type: 'text' }
  if (readType(format, path) !== 'json_schema') {
    throw invalidField(`${path}.type`, 'must be json_schema')
  }
  const { schema } = readObject(schemaFormat, format, path)
  const fault = findSchemaFault(schema)
  if (fault !== null) throw invalidField(`${path}.schema`, `is not a valid JSON Schema: ${fault}`)
  return { type: 'json-schema', name: schemaName, description: null, schema, strict: true }
}
