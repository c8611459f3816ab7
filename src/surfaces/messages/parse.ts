import type { Config } from '#config/schema.ts'
import type { McpToolRequest } from '#hosted-tools/mcp/request.ts'
import type { WebSearchRequest } from '#hosted-tools/web-search/request.ts'
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
import type { NativeNeeds } from '#surfaces/native-tools.ts'
import type { ThinkingDisplay } from './message.ts'
import { parseTexts } from './parse-content.ts'
import { parseMcpServers, type Toolset } from './parse-mcp.ts'
import { parseMessages } from './parse-messages.ts'
import { defaultThinking, parseThinkingOptions } from './parse-thinking.ts'
import { forcedTool, parseToolChoice, parseTools } from './parse-tools.ts'
import { invalidField, orRefusal, readObject, readType, unknownPart } from './read-object.ts'
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
  needs: NativeNeeds
  /** MCP servers, which the gateway calls where the upstream does not. */
  mcp: readonly McpToolRequest[]
  /** A web search that the gateway runs. */
  webSearch: WebSearchRequest
  /** Ignored by upstreams of other protocols: types of blocks, an unknown version. */
  ignored: readonly string[]
}

export type ParseContext = {
  limits: Pick<Config['limits'], 'inputCharsMax' | 'inputItemsMax' | 'toolsMax'>
  /** Of the principal. */
  seals: Seals
  headers: Headers
  /** Whether the gateway runs web searches; by default they are left to the upstream. */
  hostsWebSearch?: boolean
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
  const { prompt, thinkingDisplay, needs, mcp, webSearch, ignored } = parsePrompt(create, context)
  const { temperature, topP, topK } = dialect.hasSampling ? parseSampling(create) : prompt.sampling
  const { safetyIdentifier, promptCacheKey } = parseEndUser(create.metadata, context.headers)
  const { unknownVersion } = dialect
  return {
    request: {
      ...prompt,
      sampling: {
        ...prompt.sampling,
        temperature,
        topP,
        topK,
        stopSequences: parseStopSequences(create.stop_sequences ?? []),
        maxOutputTokens: create.max_tokens === 0 ? null : create.max_tokens,
      },
      safetyIdentifier,
      promptCacheKey,
      serviceTier: parseServiceTier(create.service_tier),
      origin: originOf(body, context),
    },
    stream: create.stream ?? false,
    isPromptOnly: create.max_tokens === 0,
    thinkingDisplay,
    needs,
    mcp,
    webSearch,
    ignored: unknownVersion === null ? ignored : [...ignored, `version ${unknownVersion}`],
  }
}

/** Parses the body of a token count: the request that the model would get. */
export function parseCountTokens(
  body: unknown,
  context: ParseContext,
): Pick<ParsedMessage, 'request' | 'needs' | 'mcp' | 'webSearch'> {
  const { prompt, ...rest } = parsePrompt(readObject(countBody, body, ''), context)
  const endUser = parseEndUser(undefined, context.headers)
  return { request: { ...prompt, ...endUser, origin: originOf(body, context) }, ...rest }
}

type ParsedPrompt = Pick<
  ParsedMessage,
  'thinkingDisplay' | 'needs' | 'mcp' | 'webSearch' | 'ignored'
> & {
  prompt: GenerationRequest
}

function parsePrompt(create: PromptBody, context: ParseContext): ParsedPrompt {
  const { limits, seals } = context
  const refusals: AppError[] = []
  const instructions = orRefusal(refusals, null, () => parseSystem(create.system))
  const conversation = parseMessages(create.messages, {
    seals,
    itemsMax: limits.inputItemsMax,
    refusals,
  })
  const { items, prefilled } = conversation
  const chars = countChars(items) + (instructions?.length ?? 0)
  if (chars > limits.inputCharsMax) throw inputTooLong(limits.inputCharsMax)
  const tools = parseTools(create.tools ?? [], {
    toolsMax: limits.toolsMax,
    messages: create.messages,
    forced: forcedTool(create.tool_choice),
    hostsWebSearch: context.hostsWebSearch ?? false,
  })
  const { effort, format } = parseOutput(create, refusals)
  const mcp = parseServers(create, { toolsets: tools.toolsets, refusals })
  const choice = parseToolChoice(create.tool_choice, tools, refusals)
  const afterTools = items.at(-1)?.type === 'tool-result'
  const thinking = orRefusal(refusals, defaultThinking, () =>
    parseThinkingOptions(create.thinking, { effort, afterTools }),
  )
  return {
    prompt: {
      ...defaultOptions,
      model: create.model,
      instructions,
      items,
      ...(prefilled ? { prefilled } : {}),
      tools: tools.tools,
      toolChoice: choice.toolChoice,
      parallelToolCalls: choice.parallelToolCalls,
      format,
      reasoning: thinking.reasoning,
      ...(tools.native.length === 0
        ? {}
        : { native: { tools: tools.native, include: [], toolCallsMax: null } }),
    },
    thinkingDisplay: thinking.display,
    mcp,
    webSearch: { tool: tools.webSearch, choice: choice.webSearch },
    needs: { protocol: 'messages', tools: tools.native, refusals, isRelayed: true },
    ignored: [...conversation.ignored],
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

function parseSampling(create: object): Pick<Sampling, 'temperature' | 'topP' | 'topK'> {
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

/** Upstreams of the same protocol read `mcp_servers` themselves, so any fault is a refusal. */
function parseServers(
  { mcp_servers: servers = [] }: PromptBody,
  { toolsets, refusals }: { toolsets: readonly Toolset[]; refusals: AppError[] },
): readonly McpToolRequest[] {
  if (servers.length + toolsets.length === 0) return []
  try {
    return parseMcpServers(servers, toolsets)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    refusals.push(error)
    return []
  }
}

type ParsedOutput = { effort: string | null; format: OutputFormat }

/** Parses `output_config`, or its predecessor `output_format`. */
function parseOutput(
  { output_config: config, output_format: deprecated }: PromptBody,
  refusals: AppError[],
): ParsedOutput {
  const { effort = null, format } = readObject(outputConfig, config ?? {}, 'output_config')
  const [wanted, path] =
    format === undefined ? [deprecated, 'output_format'] : [format, 'output_config.format']
  const parse = () => parseFormat(wanted, path)
  return { effort, format: orRefusal<OutputFormat>(refusals, { type: 'text' }, parse) }
}

/** The protocol has no name for a schema, but upstreams require one. */
const schemaName = 'answer'

function parseFormat(format: JsonObject | undefined, path: string): OutputFormat {
  if (format === undefined) return { type: 'text' }
  if (readType(format, path) !== 'json_schema') {
    throw unknownPart(`${path}.type`, 'must be json_schema')
  }
  const { schema } = readObject(schemaFormat, format, path)
  const fault = findSchemaFault(schema)
  if (fault !== null) throw invalidField(`${path}.schema`, `is not a valid JSON Schema: ${fault}`)
  return { type: 'json-schema', name: schemaName, description: null, schema, strict: true }
}
