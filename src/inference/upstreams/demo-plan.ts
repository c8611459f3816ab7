import type { ToolCallHead } from '#inference/events.ts'
import type { ContentPart, GenerationRequest, Tool, ToolName } from '#inference/request.ts'
import { isSameTool, mayCall, requiresCall } from '#inference/tools.ts'
import type { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { sampleFromSchema } from '#lib/schema-sample.ts'

/** The output of a demo model: blocks in order, each in the pieces in which it is streamed. */
export type DemoPlan = {
  blocks: readonly DemoBlock[]
  /** Thrown after the blocks, instead of a finish. */
  failure?: AppError
  /** Whether the output ends as if its limit were reached. */
  isTruncated?: boolean
}

export type DemoBlock =
  | { type: 'reasoning'; pieces: readonly string[] }
  | { type: 'text'; form: 'answer' | 'refusal'; pieces: readonly string[]; pauseMs?: number }
  | { type: 'tool-call'; call: ToolCallHead; pieces: readonly string[] }

/** The most calls of one turn. */
const parallelCallsMax = 4
/** The most words of the prompt that are repeated. */
const echoedWordsMax = 200
/** The most words of a tool result that are repeated. */
const resultWordsMax = 50
const jsonPieceChars = 8

/**
 * Plans a call where one is required, where files can be searched, or where the prompt mentions a
 * tool; otherwise JSON where the request asks for it, or text.
 */
export function planAnswer(request: GenerationRequest): DemoPlan {
  const tools = callableTools(request)
  if (requiresCall(request.toolChoice) && tools.length > 0) return planCalls(request, tools)
  const mentioned = findMentioned(request)
  if (mentioned.length > 0) return planCalls(request, mentioned)
  const text =
    request.items.at(-1)?.type === 'tool-result' ? repeatResult(request) : repeatPrompt(request)
  return { blocks: [formatText(request, text)] }
}

export function planReasoning(request: GenerationRequest): DemoPlan {
  const { blocks } = planAnswer(request)
  if (request.reasoning.effort === 'none') return { blocks }
  const count = toWords(readPrompt(request)).length
  const reasoning = `The prompt has ${count} words. I am a demo, so I will repeat what it says.`
  return { blocks: [{ type: 'reasoning', pieces: toWords(reasoning) }, ...blocks] }
}

/** Calls the tools, and responds with text once there is a result. */
export function planTools(request: GenerationRequest): DemoPlan {
  const hasResult = request.items.at(-1)?.type === 'tool-result'
  const tools = callableTools(request)
  return hasResult || tools.length === 0 ? planAnswer(request) : planCalls(request, tools)
}

export function textBlock(text: string, form: 'answer' | 'refusal' = 'answer'): DemoBlock {
  return { type: 'text', form, pieces: toWords(text) }
}

/** Words with the space after them, which the demo counts as tokens. */
export function toWords(text: string): string[] {
  return text.match(/\S+\s*/g) ?? []
}

/** The text of the last user message. */
export function readPrompt(request: GenerationRequest): string {
  const last = request.items.findLast((item) => item.type === 'message' && item.role === 'user')
  return last?.type === 'message' ? readText(last.parts) : ''
}

export function readText(parts: readonly ContentPart[]): string {
  return parts.map((part) => ('text' in part ? part.text : '')).join(' ')
}

function planCalls(request: GenerationRequest, tools: readonly Tool[]): DemoPlan {
  const count = request.parallelToolCalls ? parallelCallsMax : 1
  const prompt = readPrompt(request)
  return { blocks: tools.slice(0, count).map((tool) => planCall(tool, prompt)) }
}

function planCall(tool: Tool, prompt: string): DemoBlock {
  const call = {
    callId: newId('call_'),
    name: tool.name,
    form: tool.type,
    ...(tool.namespace === undefined ? {} : { namespace: tool.namespace }),
  }
  if (tool.type === 'custom') {
    return { type: 'tool-call', call, pieces: toWords('input made up by the demo') }
  }
  const args = isFileSearch(tool)
    ? searchArguments(prompt)
    : JSON.stringify(sampleFromSchema({ type: 'object', ...tool.parameters }))
  return { type: 'tool-call', call, pieces: toPieces(args) }
}

function callableTools({ tools, toolChoice }: GenerationRequest): readonly Tool[] {
  return tools.filter((tool) =>
    toolChoice.type === 'tool' ? isSameTool(tool, toolChoice) : mayCall(toolChoice, tool),
  )
}

/**
 * File search, and the tools whose name shares a word with the prompt: "What is the weather?" mentions
 * get_weather.
 */
function findMentioned(request: GenerationRequest): readonly Tool[] {
  const last = request.items.at(-1)
  if (last?.type !== 'message' || last.role !== 'user') return []
  const words = new Set(wordsOf(readPrompt(request)))
  const isMentioned = ({ name }: Tool) =>
    wordsOf(name).some((word) => word.length >= wordCharsMin && words.has(word))
  return callableTools(request).filter((tool) => isFileSearch(tool) || isMentioned(tool))
}

/** Shorter words, such as `get`, do not identify a tool. */
const wordCharsMin = 5

function wordsOf(text: string): string[] {
  const divided = text.replace(/([a-z])([A-Z])/g, '$1 $2')
  return divided.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}

function formatText(request: GenerationRequest, text: string): DemoBlock {
  const { format } = request
  if (format.type === 'text') return textBlock(text)
  const value =
    format.type === 'json-object' ? { answer: text.trim() } : sampleFromSchema(format.schema)
  return { type: 'text', form: 'answer', pieces: toPieces(JSON.stringify(value)) }
}

function repeatPrompt(request: GenerationRequest): string {
  const words = toWords(readPrompt(request))
  if (words.length === 0) return 'You said nothing, and I am a demo model: I have nothing to add.'
  const repeated = words.slice(0, echoedWordsMax).join('').trim()
  return `You said: ${repeated}${words.length > echoedWordsMax ? ' …' : ''}\n\nI am a demo model and run without a network.`
}

function repeatResult(request: GenerationRequest): string {
  const start = request.items.findLastIndex((item) => item.type !== 'tool-result') + 1
  const results = request.items
    .slice(start)
    .map((item) => (item.type === 'tool-result' ? readText(item.parts) : ''))
  const quoted = results.map(quotePassage).find((text) => text !== null)
  if (quoted !== undefined) return quoted
  const result = results.at(-1) ?? ''
  return `The tool returned: ${toWords(result).slice(0, resultWordsMax).join('').trim()}`
}

function toPieces(text: string): string[] {
  return text.match(new RegExp(`.{1,${jsonPieceChars}}`, 'gsu')) ?? []
}

/** The longest search query, in characters. */
const queryCharsMax = 400
/** The most words of a passage that are quoted. */
const quotedWordsMax = 40

function isFileSearch({ name, namespace }: ToolName): boolean {
  return name === 'file_search' && namespace === undefined
}

function searchArguments(prompt: string): string {
  return JSON.stringify({ queries: [prompt.slice(0, queryCharsMax)] })
}

/** A passage of a search result. */
const passageElement =
  /<(passage-\w+) marker="(【\d+】)" file="([^"]*)"(?: page="(\d+)")?>\n([\s\S]*?)\n<\/\1>/

/** Quotes the first passage of a search result with its marker; null if there is none. */
function quotePassage(result: string): string | null {
  const found = passageElement.exec(result)
  if (found === null) return null
  const [, , marker = '', file = '', page, text = ''] = found
  const words = text.match(/\S+/g) ?? []
  const quoted = words.slice(0, quotedWordsMax).join(' ')
  const more = words.length > quotedWordsMax ? ' …' : ''
  const origin = page === undefined ? file : `${file}, page ${page}`
  return `It says in ${origin}: "${quoted}${more}" ${marker}\n\nI am a demo model and run without a network.`
}
