import type { Citation, TextForm, TokenLogprob, Usage } from '#inference/events.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'

/** A text that says something; null where it is absent, empty or not a text. */
export function readText(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

export function readIndex(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}

export function readRecords(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

/** Arguments of a call: JSON text, or the value itself where a server does not write it as text. */
export function readToolInput(value: unknown): string {
  if (typeof value === 'string') return value
  return value === null || value === undefined ? '' : JSON.stringify(value)
}

export type TextContent = {
  form: TextForm
  text: string
  annotations: JsonObject[]
  logprobs: unknown
}

/** The parts of a message that hold text, in order. */
export function readMessageContent(item: JsonObject): TextContent[] {
  const { content } = item
  if (typeof content === 'string') {
    return [{ form: 'answer' as const, text: content, annotations: [], logprobs: null }].filter(
      ({ text }) => text !== '',
    )
  }
  return readRecords(content).flatMap((part) => {
    const refusal = readText(part['refusal'])
    const text = refusal ?? readText(part['text'])
    if (text === null) return []
    return [
      {
        form: refusal === null ? ('answer' as const) : ('refusal' as const),
        text,
        annotations: readRecords(part['annotations']),
        logprobs: part['logprobs'],
      },
    ]
  })
}

/** The texts of a reasoning item's `summary` or `content`. */
export function readTexts(value: unknown): string[] {
  return readRecords(value).flatMap((part) => readText(part['text']) ?? [])
}

/** How much text a message or reasoning item holds; of two carriers, the longer one counts. */
export function textCharsOf(item: JsonObject): number {
  const chars = (texts: readonly string[]) => texts.reduce((sum, text) => sum + text.length, 0)
  if (item['type'] === 'message') return chars(readMessageContent(item).map(({ text }) => text))
  return Math.max(chars(readTexts(item['summary'])), chars(readTexts(item['content'])))
}

export function readCitation(annotation: unknown): Citation | null {
  if (!isRecord(annotation)) return null
  const text = (name: string) => readText(annotation[name]) ?? ''
  const index = (name: string) => readIndex(annotation[name]) ?? 0
  switch (annotation['type']) {
    case 'url_citation':
      return {
        kind: 'url',
        url: text('url'),
        title: text('title'),
        startIndex: index('start_index'),
        endIndex: index('end_index'),
      }
    case 'file_citation':
      return {
        kind: 'file',
        fileId: text('file_id'),
        filename: text('filename'),
        index: index('index'),
      }
    case 'container_file_citation':
      return {
        kind: 'file',
        fileId: text('file_id'),
        filename: text('filename'),
        index: index('start_index'),
      }
    default:
      return null
  }
}

/** null where there are none, so that an event carries the field only when it says something. */
export function readLogprobs(value: unknown): TokenLogprob[] | null {
  const tokens = readRecords(value)
  if (tokens.length === 0) return null
  return tokens.map((token) => ({
    ...readLogprob(token),
    top: readRecords(token['top_logprobs']).map(readLogprob),
  }))
}

function readLogprob(value: JsonObject): { token: string; logprob: number; bytes: number[] } {
  const token = readText(value['token']) ?? ''
  const { bytes } = value
  return {
    token,
    logprob: readIndex(value['logprob']) ?? 0,
    bytes: Array.isArray(bytes)
      ? bytes.filter((byte) => typeof byte === 'number')
      : [...new TextEncoder().encode(token)],
  }
}

export function readUsage(value: unknown): Usage | null {
  if (!isRecord(value)) return null
  const count = (of: unknown, name: string) => (isRecord(of) ? (readIndex(of[name]) ?? 0) : 0)
  const inputTokens = count(value, 'input_tokens')
  const outputTokens = count(value, 'output_tokens')
  return {
    inputTokens,
    cachedTokens: count(value['input_tokens_details'], 'cached_tokens'),
    cacheWriteTokens: count(value['input_tokens_details'], 'cache_write_tokens'),
    outputTokens,
    reasoningTokens: count(value['output_tokens_details'], 'reasoning_tokens'),
    totalTokens: readIndex(value['total_tokens']) ?? inputTokens + outputTokens,
  }
}
