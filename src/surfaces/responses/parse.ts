import type { Config } from '#config/schema.ts'
import type { HostedToolRequest } from '#hosted-tools/hosted-tools.ts'
import {
  defaultSampling,
  type GenerationRequest,
  type NativeParts,
  type Sampling,
  type ToolName,
} from '#inference/request.ts'
import { countChars } from '#inference/token-estimate.ts'
import { AppError } from '#lib/errors.ts'
import { deepFreeze } from '#lib/frozen.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import type { StoredItem } from '#responses/response.ts'
import type { Seals } from '#sealing/seals.ts'
import type { NativeNeeds } from '#surfaces/native-tools.ts'
import type { CompactionRules } from './compaction.ts'
import type { History } from './history.ts'
import { parseItems } from './parse-items.ts'
import { parseText } from './parse-text.ts'
import { echoToolChoice, parseToolChoice } from './parse-tool-choice.ts'
import { type ParsedTools, parseTools } from './parse-tools.ts'
import { invalidField, readObject } from './read-object.ts'
import {
  type CreateResponse,
  contextManagementEntry,
  createResponse,
  type ResponseEcho,
  reasoningOptions,
} from './schema/request.ts'
import { includedResults } from './show.ts'

export type ParsedCreate = {
  request: GenerationRequest
  /** Tools that the gateway runs. */
  hosted: HostedToolRequest
  stream: boolean
  /** Whether to store the input with the connection, for its next turn, without calling the model. */
  isInputOnly: boolean
  /** The input in the form that is stored. */
  storedInput: readonly StoredItem[]
  asyncTools: readonly ToolName[]
  /** Whether reasoning items contain their encrypted payload (`include`). */
  includeSealed: boolean
  /** The types of items whose search results are included (`include`). */
  includeSearchResults: readonly string[]
  compaction: CompactionRules
  echo: ResponseEcho
  needs: NativeNeeds
  /** The types of unknown input items, each once. */
  ignoredItems: readonly string[]
}

export type ParseContext = {
  limits: ParseLimits
  /** The items before the input, and those that the input may refer to. */
  history: History
  /** Of the principal. */
  seals: Seals
  /** Whether the gateway runs web searches; by default they are left to the upstream. */
  hostsWebSearch?: boolean
}

type ParseLimits = Pick<Config['limits'], 'inputCharsMax' | 'inputItemsMax' | 'toolsMax'>

/**
 * Parses the body of `POST /v1/responses` into a request to a model. Strings are never converted to
 * numbers or booleans; unknown fields, items and tools are ignored.
 *
 * Throws an `AppError` whose `param` is the path of the first invalid field.
 */
export function parseCreateResponse(
  body: unknown,
  { limits, history, seals, hostsWebSearch }: ParseContext,
): ParsedCreate {
  refuseChatMessages(body)
  const create = readObject(createResponse, body, '')
  if (create.background === true && create.store === false) {
    throw invalidField('background', 'requires store')
  }
  const parsedItems = parseItems(readInput(create, history), {
    history,
    seals,
    itemsMax: limits.inputItemsMax,
  })
  const { items } = parsedItems
  const chars = countChars(items) + (create.instructions?.length ?? 0)
  if (chars > limits.inputCharsMax) throw inputTooLong(limits.inputCharsMax)
  const tools = parseTools(create.tools ?? [], limits.toolsMax, hostsWebSearch)
  const choice = parseToolChoice(create.tool_choice, tools)
  const text = parseText(create.text)
  const reasoning = parseReasoningOptions(create.reasoning)
  const include = create.include ?? []

  return {
    request: {
      model: create.model,
      instructions: create.instructions || null,
      items,
      tools: tools.tools,
      toolChoice: choice.model,
      parallelToolCalls: create.parallel_tool_calls ?? true,
      sampling: parseSampling(create, include.includes('message.output_text.logprobs')),
      format: text.format,
      verbosity: text.verbosity,
      reasoning,
      promptCacheKey: create.prompt_cache_key ?? null,
      ...(create.prompt_cache_options === undefined
        ? {}
        : { promptCacheOptions: create.prompt_cache_options }),
      safetyIdentifier: create.safety_identifier ?? create.user ?? null,
      serviceTier: create.service_tier ?? null,
      ...(tools.native.length === 0 ? {} : { native: nativeParts(create, tools) }),
    },
    hosted: {
      mcp: tools.mcp,
      mcpChoice: choice.mcp,
      mcpHistory: parsedItems.mcpHistory,
      fileSearch: {
        tool: tools.fileSearch,
        choice: choice.fileSearch,
        found: parsedItems.found,
      },
      webSearch: { tool: tools.webSearch, choice: choice.webSearch },
    },
    storedInput: parsedItems.stored,
    asyncTools: tools.tools.some((tool) => tool.async)
      ? tools.tools.filter((tool) => tool.async)
      : [],
    stream: create.stream ?? false,
    isInputOnly: create.generate === false,
    includeSealed: include.includes('reasoning.encrypted_content'),
    includeSearchResults: includedResults(include),
    compaction: {
      now: parsedItems.compactsNow,
      threshold: parseCompactThreshold(create.context_management ?? []),
    },
    echo: echoRequest(create, {
      tools: tools.echo,
      text: text.echo,
      reasoning,
      metadata: create.metadata === undefined ? {} : parseMetadata(create.metadata),
    }),
    needs: {
      protocol: 'responses',
      tools: tools.native,
      refusals: choice.refusal === undefined ? [] : [choice.refusal],
      isRelayed: true,
    },
    ignoredItems: parsedItems.ignored,
  }
}

/** The number of tokens above which to compact; entries of other types are unknown and ignored. */
function parseCompactThreshold(entries: readonly unknown[]): CompactionRules['threshold'] {
  const rules = entries.map((entry, index) =>
    readObject(contextManagementEntry, entry, `context_management[${index}]`),
  )
  const rule = rules.find(({ type }) => type === 'compaction')
  return rule === undefined ? null : (rule.compact_threshold ?? 'by-model')
}

function refuseChatMessages(body: unknown): void {
  if (!isRecord(body)) return
  const { input = null, messages = null } = body
  if (messages === null || input !== null) return
  throw new AppError(
    'user_message_missing',
    'Send the conversation as input (a string or an array of items); messages is not supported.',
    { param: 'input' },
  )
}

/** The input is optional if there is a history. */
function readInput(create: CreateResponse, history: History): string | readonly unknown[] {
  if (create.input !== undefined) return create.input
  if (history.items.length === 0) throw invalidField('input', 'is required')
  return []
}

function inputTooLong(charsMax: number): AppError {
  return new AppError(
    'request_too_large',
    `The text of the input exceeds the limit of ${charsMax} characters.`,
    { param: 'input' },
  )
}

const defaultReasoning: ResponseEcho['reasoning'] = deepFreeze({ effort: null, summary: null })

function parseReasoningOptions(value: JsonObject | undefined): ResponseEcho['reasoning'] {
  if (value === undefined) return defaultReasoning
  const options = readObject(reasoningOptions, value, 'reasoning')
  return {
    effort: options.effort ?? null,
    summary: options.summary ?? options.generate_summary ?? null,
  }
}

function parseSampling(create: CreateResponse, includeLogprobs: boolean): Sampling {
  const { top_logprobs: alternatives = 0 } = create
  return {
    ...defaultSampling,
    temperature: create.temperature ?? null,
    topP: create.top_p ?? null,
    presencePenalty: create.presence_penalty ?? null,
    frequencyPenalty: create.frequency_penalty ?? null,
    maxOutputTokens: create.max_output_tokens ?? null,
    topLogprobs: includeLogprobs || alternatives > 0 ? alternatives : null,
  }
}

const metadataPairsMax = 16
const metadataKeyCharsMax = 64
const metadataValueCharsMax = 512

/** Returns the metadata of an object, as OpenAI limits it. */
export function parseMetadata(metadata: JsonObject): Readonly<Record<string, string>> {
  const pairs = Object.entries(metadata)
  if (pairs.length > metadataPairsMax) {
    throw invalidField('metadata', `must not have more than ${metadataPairsMax} pairs`)
  }
  const strings = pairs.map(([key, value]): [string, string] => {
    if (key.length > metadataKeyCharsMax) {
      throw invalidField(
        'metadata',
        `must not have a key of more than ${metadataKeyCharsMax} characters`,
      )
    }
    if (typeof value !== 'string' || value.length > metadataValueCharsMax) {
      const expected = `a string of at most ${metadataValueCharsMax} characters`
      throw invalidField(`metadata.${key}`, `must be ${expected}`)
    }
    return [key, value]
  })
  return Object.fromEntries(strings)
}

/** Additional output of tools that upstreams run. */
const nativeIncludes = [
  'web_search_call.action.sources',
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
]

function nativeParts(create: CreateResponse, { native }: ParsedTools): NativeParts {
  return {
    tools: native,
    include: nativeIncludes.filter((name) => create.include?.includes(name)),
    toolCallsMax: create.max_tool_calls ?? null,
  }
}

type EchoedParts = Pick<ResponseEcho, 'tools' | 'text' | 'reasoning' | 'metadata'>

/** The fields of the response that repeat the request, with those that are normalized. */
export function echoRequest(
  create: CreateResponse,
  { tools, text, reasoning, metadata }: EchoedParts,
): ResponseEcho {
  return {
    tools,
    text,
    reasoning,
    metadata,
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
