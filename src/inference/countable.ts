import { assertNever } from '#lib/assert.ts'
import { mediaTokens } from './media-tokens.ts'
import type { ContentPart, GenerationRequest, RequestItem, Tool } from './request.ts'

/** What is counted of a request: nothing that its caller did not send. */
export type CountedRequest = Pick<GenerationRequest, 'instructions' | 'items' | 'tools'>

export type Countable = {
  /** Every text that a model will read, apart from what a template puts around it. */
  readonly texts: readonly string[]
  /** What chat templates put around messages, calls, tools and the whole. */
  readonly templateTokens: number
  /** Images, files and sealed reasoning, which are no text: what they probably cost. */
  readonly opaqueTokens: number
}

const itemOverheadTokens = 4
const promptOverheadTokens = 3
const toolOverheadTokens = 8
/** Sealed reasoning is longer than what it holds. */
const sealedCharsPerToken = 6

/** A format for the answer is not counted, because most servers do not show it to the model. */
export function countableOf(request: CountedRequest): Countable {
  const { instructions, items, tools } = request
  const texts: string[] = []
  let opaqueTokens = 0
  if (instructions !== null) texts.push(instructions)
  for (const item of items) opaqueTokens += addItem(item, texts)
  for (const tool of tools) addTool(tool, texts)
  const itemCount = items.length + (instructions === null ? 0 : 1)
  return {
    texts: texts.filter((text) => text !== ''),
    templateTokens:
      promptOverheadTokens + itemCount * itemOverheadTokens + tools.length * toolOverheadTokens,
    opaqueTokens,
  }
}

/** Adds the texts of an item, and returns the tokens of what is no text. */
function addItem(item: RequestItem, texts: string[]): number {
  switch (item.type) {
    case 'message':
    case 'tool-result':
      return item.parts.reduce((tokens, part) => tokens + addPart(part, texts), 0)
    case 'tool-call':
      texts.push(item.name, item.arguments)
      return 0
    case 'reasoning':
      if (item.text !== '') texts.push(item.text)
      else if (item.sealed !== undefined) return item.sealed.length / sealedCharsPerToken
      else for (const text of item.summary) texts.push(text)
      return 0
    default:
      return assertNever(item)
  }
}

function addPart(part: ContentPart, texts: string[]): number {
  switch (part.type) {
    case 'text':
    case 'refusal':
      texts.push(part.text)
      return 0
    case 'image':
    case 'file':
      return mediaTokens(part)
    default:
      return assertNever(part)
  }
}

function addTool(tool: Tool, texts: string[]): void {
  const definition =
    tool.type === 'function' ? JSON.stringify(tool.parameters ?? {}) : tool.grammar?.definition
  texts.push(tool.name, tool.description ?? '', tool.namespaceDescription ?? '', definition ?? '')
}
