import type { Config } from '#config/schema.ts'
import type { HostedToolRequest } from '#hosted-tools/hosted-tools.ts'
import { countChars } from '#inference/count-chars.ts'
import type { GenerationRequest, Sampling } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import type { StoredItem } from '#responses/response.ts'
import type { Seals } from '#sealing/seals.ts'
import type { CompactionRules } from './compaction.ts'
import type { History } from './history.ts'
import { parseThreshold } from './parse-compaction.ts'
import { parseFileSearchChoice } from './parse-file-search.ts'
import { parseItems } from './parse-items.ts'
import { parseMcpChoice } from './parse-mcp.ts'
import { type ParsedText, parseText } from './parse-text.ts'
import { echoToolChoice, parseToolChoice } from './parse-tool-choice.ts'
import { parseTools } from './parse-tools.ts'
import { badField, createReader } from './read-object.ts'
import { type CreateBody, createBody, reasoningOptions } from './schema.ts'

export type ParsedCreate = {
  request: GenerationRequest
  /** Tools that run here. */
  hosted: HostedToolRequest
  stream: boolean
  /** Whether the input is only to be remembered, for a turn of the same connection. */
  isWarmUp: boolean
  /** The input as it is kept. */
  storedInput: readonly StoredItem[]
  /** Whether reasoning items carry their sealed payload (`include`). */
  includeSealed: boolean
  /** Whether searches of files show what they have found (`include`). */
  includeSearchResults: boolean
  compaction: CompactionRules
  echo: ResponseEcho
  /** The types of tools and of input items that were left out, each once. */
  ignoredTools: readonly string[]
  ignoredItems: readonly string[]
}

/** The fields of the Response object that repeat the request, with the defaults that held. */
export type ResponseEcho = {
  model: string
  instructions: string | null
  previous_response_id: string | null
  conversation?: { id: string }
  tools: readonly JsonObject[]
  tool_choice: string | JsonObject
  parallel_tool_calls: boolean
  text: ParsedText['echo']
  reasoning: { effort: string | null; summary: string | null }
  temperature: number
  top_p: number
  presence_penalty: number
  frequency_penalty: number
  top_logprobs: number
  truncation: 'auto' | 'disabled'
  max_output_tokens: number | null
  max_tool_calls: number | null
  store: boolean
  background: boolean
  service_tier: string
  metadata: Readonly<Record<string, string>>
  safety_identifier: string | null
  prompt_cache_key: string | null
}

export type ParseContext = {
  limits: ParseLimits
  /** What the request follows, and what its input may name. */
  history: History
  /** Of the caller. */
  seals: Seals
}

type ParseLimits = Pick<Config['limits'], 'inputCharsMax' | 'inputItemsMax' | 'toolsMax'>

const readBody = createReader(createBody)
const readReasoningOptions = createReader(reasoningOptions)

/**
 * The body of `POST /v1/responses` as a request to a model. Numbers and booleans are never read
 * from texts, and unknown fields, items and tools are no error.
 *
 * Throws an `AppError` whose `param` is the path of the first field at fault.
 */
export function parseCreateResponse(
  body: unknown,
  { limits, history, seals }: ParseContext,
): ParsedCreate {
  refuseMessages(body)
  const create = readBody(body, '')
  if (create.background === true && create.store === false) {
    throw badField('background', 'needs store, since it outlives its connection')
  }
  const given = readInput(create, history)
  const itemsMax = limits.inputItemsMax
  const parsedItems = parseItems(given, { history, seals, itemsMax })
  const { items, stored, ignored, compactsNow, mcpHistory, found } = parsedItems
  const chars = countChars(items) + (create.instructions?.length ?? 0)
  if (chars > limits.inputCharsMax) throw inputTooLong(limits.inputCharsMax)
  const tools = parseTools(create.tools ?? [], limits.toolsMax)
  const toolChoice = parseToolChoice(create.tool_choice, tools)
  const text = parseText(create.text)
  const reasoning = parseReasoningOptions(create.reasoning)
  const include = create.include ?? []

  return {
    request: {
      model: create.model,
      instructions: create.instructions || null,
      items,
      tools: tools.tools,
      toolChoice,
      parallelToolCalls: create.parallel_tool_calls ?? true,
      sampling: parseSampling(create, include.includes('message.output_text.logprobs')),
      format: text.format,
      verbosity: text.verbosity,
      reasoning,
      promptCacheKey: create.prompt_cache_key ?? null,
      safetyIdentifier: create.safety_identifier ?? create.user ?? null,
      serviceTier: create.service_tier ?? null,
    },
    hosted: {
      mcp: tools.mcp,
      mcpChoice: parseMcpChoice(create.tool_choice, tools.mcp),
      mcpHistory,
      fileSearch: {
        tool: tools.fileSearch,
        choice: parseFileSearchChoice(create.tool_choice),
        found,
      },
    },
    storedInput: stored,
    stream: create.stream ?? false,
    isWarmUp: create.generate === false,
    includeSealed: include.includes('reasoning.encrypted_content'),
    includeSearchResults: include.includes('file_search_call.results'),
    compaction: { now: compactsNow, threshold: parseThreshold(create.context_management) },
    echo: {
      ...echoScalars(create),
      tools: tools.echo,
      text: text.echo,
      reasoning,
      metadata: parseMetadata(create.metadata ?? {}),
    },
    ignoredTools: tools.ignored,
    ignoredItems: ignored,
  }
}

function refuseMessages(body: unknown): void {
  if (!isRecord(body)) return
  const { input = null, messages = null } = body
  if (messages === null || input !== null) return
  throw new AppError(
    'user_message_missing',
    'Send the conversation as input, a text or an array of items; messages is not read.',
    { param: 'input' },
  )
}

/** The input may be left out where there is something to go on from. */
function readInput(create: CreateBody, history: History): string | readonly unknown[] {
  if (create.input !== undefined) return create.input
  if (history.items.length === 0) throw badField('input', 'is required')
  return []
}

function inputTooLong(charsMax: number): AppError {
  return new AppError(
    'request_too_large',
    `The text of the input is longer than ${charsMax} characters, which is the limit.`,
    { param: 'input' },
  )
}

function parseReasoningOptions(value: JsonObject | undefined): ResponseEcho['reasoning'] {
  const options = readReasoningOptions(value ?? {}, 'reasoning')
  return {
    effort: options.effort ?? null,
    summary: options.summary ?? options.generate_summary ?? null,
  }
}

function parseSampling(create: CreateBody, includeLogprobs: boolean): Sampling {
  const { top_logprobs: alternatives = 0 } = create
  return {
    temperature: create.temperature ?? null,
    topP: create.top_p ?? null,
    topK: null,
    stopSequences: [],
    presencePenalty: create.presence_penalty ?? null,
    frequencyPenalty: create.frequency_penalty ?? null,
    maxOutputTokens: create.max_output_tokens ?? null,
    topLogprobs: includeLogprobs || alternatives > 0 ? alternatives : null,
  }
}

// As OpenAI documents them.
const metadataPairsMax = 16
const metadataKeyCharsMax = 64
const metadataValueCharsMax = 512

export function parseMetadata(metadata: JsonObject): Readonly<Record<string, string>> {
  const pairs = Object.entries(metadata)
  if (pairs.length > metadataPairsMax) {
    throw badField('metadata', `must not have more than ${metadataPairsMax} pairs`)
  }
  const texts = pairs.map(([key, value]): [string, string] => {
    if (key.length > metadataKeyCharsMax) {
      throw badField(
        'metadata',
        `must not have a key of more than ${metadataKeyCharsMax} characters`,
      )
    }
    if (typeof value !== 'string' || value.length > metadataValueCharsMax) {
      const expected = `a text of at most ${metadataValueCharsMax} characters`
      throw badField(`metadata.${key}`, `must be ${expected}`)
    }
    return [key, value]
  })
  return Object.fromEntries(texts)
}

function echoScalars(
  create: CreateBody,
): Omit<ResponseEcho, 'tools' | 'text' | 'reasoning' | 'metadata'> {
  return {
    model: create.model,
    instructions: create.instructions ?? null,
    previous_response_id: create.previous_response_id ?? null,
    ...echoConversation(create.conversation),
    tool_choice: echoToolChoice(create.tool_choice),
    parallel_tool_calls: create.parallel_tool_calls ?? true,
    temperature: create.temperature ?? 1,
    top_p: create.top_p ?? 1,
    presence_penalty: create.presence_penalty ?? 0,
    frequency_penalty: create.frequency_penalty ?? 0,
    top_logprobs: create.top_logprobs ?? 0,
    truncation: create.truncation ?? 'disabled',
    max_output_tokens: create.max_output_tokens ?? null,
    max_tool_calls: create.max_tool_calls ?? null,
    store: create.store ?? true,
    background: create.background ?? false,
    service_tier: 'default',
    safety_identifier: create.safety_identifier ?? null,
    prompt_cache_key: create.prompt_cache_key ?? null,
  }
}

function echoConversation(conversation: unknown): { conversation?: { id: string } } {
  const id = isRecord(conversation) ? conversation['id'] : conversation
  return typeof id === 'string' ? { conversation: { id } } : {}
}
