import { assertNever } from '#lib/assert.ts'
import { imageSizeOf } from './image-size.ts'
import type { ContentPart, GenerationRequest, RequestItem, Tool } from './request.ts'

/** The counted parts of a request. */
export type CountedRequest = Pick<GenerationRequest, 'instructions' | 'items' | 'tools'>

export type CountableContent = {
  /** Every text that the model reads, without what chat templates add. */
  readonly texts: readonly string[]
  /** What chat templates add around messages, calls, tools and the whole. */
  readonly templateTokens: number
  /** Estimated tokens of images, files and sealed reasoning. */
  readonly opaqueTokens: number
}

const itemOverheadTokens = 4
const promptOverheadTokens = 3
const toolOverheadTokens = 8
/** Sealed reasoning is longer than its content. */
const sealedCharsPerToken = 6

/** The output format is not counted: most servers do not show it to the model. */
export function countableOf(request: CountedRequest): CountableContent {
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

/** Adds the texts of an item; returns the estimated tokens of its other content. */
function addItem(item: RequestItem, texts: string[]): number {
  if (item.type === 'tool-call') {
    texts.push(item.name, item.arguments)
    return 0
  }
  if (item.type === 'reasoning') {
    const { text, sealed, summary } = item
    if (text === '' && sealed !== undefined) return sealed.length / sealedCharsPerToken
    texts.push(...(text === '' ? summary : [text]))
    return 0
  }
  if (item.type === 'native') {
    texts.push(JSON.stringify(item.value))
    return 0
  }
  let mediaTokenCount = 0
  for (const part of item.parts) {
    if ('text' in part) texts.push(part.text)
    else mediaTokenCount += mediaTokens(part)
  }
  return mediaTokenCount
}

function addTool(tool: Tool, texts: string[]): void {
  const definition =
    tool.type === 'function' ? JSON.stringify(tool.parameters ?? {}) : tool.grammar?.definition
  texts.push(tool.name, tool.description ?? '', tool.namespaceDescription ?? '', definition ?? '')
}

/** The length of all texts; images, files and sealed payloads are not counted. */
export function countChars(items: readonly RequestItem[]): number {
  let chars = 0
  for (const item of items) {
    if (item.type === 'tool-call') chars += item.arguments.length
    else if (item.type === 'reasoning') chars += item.text.length + item.summary.join('').length
    else if (item.type === 'native') chars += JSON.stringify(item.value).length
    else for (const part of item.parts) if ('text' in part) chars += part.text.length
  }
  return chars
}

type ImagePart = Extract<ContentPart, { type: 'image' }>
type FilePart = Extract<ContentPart, { type: 'file' }>

/** Models scale larger images down to `imageTokensMax`. */
const pixelsPerToken = 750
const imageTokensMax = 1_600
/** An image of unknown size, such as one behind a URL. */
const unknownImageTokens = 1_500
const smallImageTokens = 85
/** A file behind a URL: a few pages. */
const remoteFileTokens = 1_500
/** Base64 is 4/3 of the data; a token is about four bytes of text, more of a PDF or Word file. */
const textFileCharsPerToken = 5.3
const binaryFileCharsPerToken = 20

/** The estimated tokens of an image (by its pixels) or a file (by its length). */
export function mediaTokens(part: ImagePart | FilePart): number {
  return part.type === 'image' ? imageTokens(part) : fileTokens(part)
}

function imageTokens({ url, detail }: ImagePart): number {
  if (detail === 'low') return smallImageTokens
  const size = imageSizeOf(url)
  if (size === null) return unknownImageTokens
  return Math.min(imageTokensMax, Math.ceil((size.width * size.height) / pixelsPerToken))
}

function fileTokens(part: FilePart): number {
  const data = part.data ?? (part.url?.startsWith('data:') ? part.url : null)
  if (data === null) return remoteFileTokens
  const isText = data.startsWith('data:text/')
  return data.length / (isText ? textFileCharsPerToken : binaryFileCharsPerToken)
}

/**
 * Estimates the input tokens of a request from its characters in one pass, without a tokenizer. English,
 * code and JSON are off by about 15 %; other scripts are between newer and older tokenizers; images count
 * by size, files are a guess.
 */
export function estimateTokens(request: CountedRequest): number {
  const { texts, templateTokens, opaqueTokens } = countableOf(request)
  const textTokens = texts.reduce((tokens, text) => tokens + measureText(text), 0)
  return Math.ceil(textTokens + templateTokens + opaqueTokens)
}

/** Estimates the output tokens of a text. */
export function estimateTextTokens(text: string): number {
  return Math.ceil(measureText(text))
}

/**
 * Tokenizers first split a text into runs: a word with the preceding space, up to three digits, marks
 * with following line breaks, further white space. A run is one or a few tokens.
 */
type CharacterRun = 'word' | 'number' | 'marks' | 'space' | 'line' | 'other'

/** Words up to this length are usually one token; further letters add pieces. */
const commonWordChars = 6
const wordPieceChars = 3
/** Most words are split at a letter beyond ASCII. */
const accentTokens = 1
const numberPieceChars = 3
const commonMarksChars = 3
const marksPieceChars = 2
const spacesPerToken = 32
/** Longer runs are data (base64, a hash), split into pieces of two characters. */
const solidCharsMax = 24
const solidCharTokens = 0.3

/** The estimated tokens of a text, not rounded. */
export function measureText(text: string): number {
  let tokens = 0
  let before: CharacterRun = 'line'
  let run: CharacterRun = 'line'
  let runChars = 0
  let solidChars = 0
  let wasLower = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const next = runOf(code)
    const isUpper = code >= 0x41 && code <= 0x5a
    // camelCase counts as several words.
    if (next !== run || (isUpper && wasLower)) {
      tokens += runTokens(run, runChars, before, next)
      before = run
      run = next
      runChars = 0
    }
    runChars++
    solidChars = next === 'word' || next === 'number' ? solidChars + 1 : 0
    if (solidChars > solidCharsMax) tokens += solidCharTokens
    if (code >= 0x80) tokens += foreignTokens(code)
    wasLower = next === 'word' && !isUpper
  }
  return tokens + runTokens(run, runChars, before, 'line')
}

function runOf(code: number): CharacterRun {
  const lower = code | 0x20
  if (lower >= 0x61 && lower <= 0x7a) return 'word'
  if (code >= 0x80) return isLatin(code) ? 'word' : 'other'
  if (code >= 0x30 && code <= 0x39) return 'number'
  if (code === 0x0a || code === 0x0d) return 'line'
  return code <= 0x20 ? 'space' : 'marks'
}

function isLatin(code: number): boolean {
  return (code >= 0xc0 && code < 0x250) || (code >= 0x1e00 && code < 0x1f00)
}

function runTokens(
  run: CharacterRun,
  chars: number,
  before: CharacterRun,
  next: CharacterRun,
): number {
  switch (run) {
    case 'word':
      return 1 + Math.max(0, chars - commonWordChars) / wordPieceChars
    case 'number':
      return Math.ceil(chars / numberPieceChars)
    case 'marks':
      // A single mark is often merged with the following word.
      if (chars === 1 && next === 'word') return 0.8
      return 1 + Math.max(0, chars - commonMarksChars) / marksPieceChars
    case 'space':
      // The last space is merged with the following word or marks.
      if (next === 'number') return 1
      return chars === 1 ? 0 : 1 + chars / spacesPerToken
    case 'line':
      return chars === 0 || before === 'marks' || next === 'space' ? 0 : 1
    case 'other':
      return 0
    default:
      return assertNever(run)
  }
}

/** The tokens of a character beyond ASCII: between newer and older tokenizers. */
function foreignTokens(code: number): number {
  if (isLatin(code)) return accentTokens
  if (code >= 0x370 && code < 0x400) return 0.55 // Greek
  if (code >= 0x400 && code < 0x590) return 0.4 // Cyrillic, Armenian
  if (code >= 0x590 && code < 0x800) return 0.55 // Hebrew, Arabic
  if (code >= 0x800 && code < 0x1200) return 0.65 // India, South East Asia
  return 1 // Chinese, Japanese, Korean and symbols; an emoji has two UTF-16 units
}
