import type { ToolCallHead } from '#inference/events.ts'
import type { ContentPart, GenerationRequest, Tool } from '#inference/request.ts'
import { isSameTool, mayCall } from '#inference/tool-choice.ts'
import type { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { sampleFromSchema } from '#lib/schema-sample.ts'
import { isFileSearch, quotePassage, searchArguments } from './demo-search.ts'

/** What a demo model is going to do: blocks in order, each in the pieces that it streams. */
export type DemoPlan = {
  blocks: readonly DemoBlock[]
  /** Thrown when the blocks are out, in place of a finish. */
  failure?: AppError
  /** Ends as if the output limit had been reached. */
  isCut?: boolean
}

export type DemoBlock =
  | { type: 'reasoning'; pieces: readonly string[] }
  | { type: 'text'; form: 'answer' | 'refusal'; pieces: readonly string[]; pauseMs?: number }
  | { type: 'tool-call'; call: ToolCallHead; pieces: readonly string[] }

/** More calls than these would show nothing new. */
const parallelCallsMax = 4
/** So much of the prompt is repeated, in words. */
const echoedWordsMax = 200
/** So much of a tool's result is repeated, in words. */
const resultWordsMax = 50
const jsonPieceChars = 8

/**
 * The answer: a call where one is demanded, where there are files to search, or where the prompt
 * speaks of a tool; JSON where it is asked for, otherwise words.
 */
export function planAnswer(request: GenerationRequest): DemoPlan {
  if (demandsCall(request)) return planCalls(request, callableTools(request))
  const wanted = findWanted(request)
  if (wanted.length > 0) return planCalls(request, wanted)
  const text = request.items.at(-1)?.type === 'tool-result' ? useResult(request) : echo(request)
  return { blocks: [answer(request, text)] }
}

export function planReasoning(request: GenerationRequest): DemoPlan {
  const { blocks } = planAnswer(request)
  if (request.reasoning.effort === 'none') return { blocks }
  const count = toWords(readPrompt(request)).length
  const thought = `The prompt has ${count} words. I am a demo, so I will repeat what it says.`
  return { blocks: [{ type: 'reasoning', pieces: toWords(thought) }, ...blocks] }
}

/** Calls the given tools, and answers once a result is there. */
export function planTools(request: GenerationRequest): DemoPlan {
  const hasResult = request.items.at(-1)?.type === 'tool-result'
  const tools = callableTools(request)
  return hasResult || tools.length === 0 ? planAnswer(request) : planCalls(request, tools)
}

export function say(text: string, form: 'answer' | 'refusal' = 'answer'): DemoBlock {
  return { type: 'text', form, pieces: toWords(text) }
}

/** Words with the space that follows them; the unit in which the demo counts tokens. */
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
  switch (toolChoice.type) {
    case 'tool':
      return tools.filter((tool) => isSameTool(tool, toolChoice))
    default:
      return tools.filter((tool) => mayCall(toolChoice, tool))
  }
}

/**
 * A search of files, and the tools of whose name the prompt holds a word: "What is the weather?"
 * speaks of get_weather.
 */
function findWanted(request: GenerationRequest): readonly Tool[] {
  const last = request.items.at(-1)
  if (last?.type !== 'message' || last.role !== 'user') return []
  const words = new Set(wordsOf(readPrompt(request)))
  const isSpokenOf = ({ name }: Tool) =>
    wordsOf(name).some((word) => word.length >= tellingChars && words.has(word))
  return callableTools(request).filter((tool) => isFileSearch(tool) || isSpokenOf(tool))
}

/** Shorter words, such as `get`, say nothing of what a tool is for. */
const tellingChars = 5

function wordsOf(text: string): string[] {
  const divided = text.replace(/([a-z])([A-Z])/g, '$1 $2')
  return divided.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}

function demandsCall(request: GenerationRequest): boolean {
  const { toolChoice } = request
  const isDemanded =
    toolChoice.type === 'required' ||
    toolChoice.type === 'tool' ||
    (toolChoice.type === 'allowed' && toolChoice.mode === 'required')
  return isDemanded && callableTools(request).length > 0
}

function answer(request: GenerationRequest, text: string): DemoBlock {
  const { format } = request
  if (format.type === 'text') return say(text)
  const value =
    format.type === 'json-object' ? { answer: text.trim() } : sampleFromSchema(format.schema)
  return { type: 'text', form: 'answer', pieces: toPieces(JSON.stringify(value)) }
}

function echo(request: GenerationRequest): string {
  const words = toWords(readPrompt(request))
  if (words.length === 0) return 'You said nothing, and I am a demo model: I have nothing to add.'
  const said = words.slice(0, echoedWordsMax).join('').trim()
  return `You said: ${said}${words.length > echoedWordsMax ? ' …' : ''}\n\nI am a demo model and run without a network.`
}

function useResult(request: GenerationRequest): string {
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
