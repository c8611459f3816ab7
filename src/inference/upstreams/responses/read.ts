import type { Citation, TextForm, Usage } from '#inference/events.ts'
import {
  readCount,
  readNumber,
  readRecords,
  readString,
  readText,
} from '#inference/upstream-fields.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'

export type TextContent = {
  form: TextForm
  text: string
  annotations: JsonObject[]
  logprobs: unknown
}

/** The parts of a message that carry text, in order. */
export function readMessageContent({ content }: JsonObject): TextContent[] {
  const parts = typeof content === 'string' ? [{ text: content }] : readRecords(content)
  return parts.flatMap((part: JsonObject) => {
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

export function charsOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0)
}

/** The characters of text in a message or reasoning item; of the two carriers, the longer counts. */
export function textCharsOf(item: JsonObject): number {
  if (item['type'] === 'message') return charsOf(readMessageContent(item).map(({ text }) => text))
  return Math.max(charsOf(readTexts(item['summary'])), charsOf(readTexts(item['content'])))
}

export function readCitation(annotation: unknown): Citation | null {
  if (!isRecord(annotation)) return null
  const index = (name: string) => readNumber(annotation[name]) ?? 0
  switch (annotation['type']) {
    case 'url_citation':
      return {
        kind: 'url',
        url: readString(annotation['url']),
        title: readString(annotation['title']),
        startIndex: index('start_index'),
        endIndex: index('end_index'),
      }
    case 'file_citation':
    case 'container_file_citation':
      return {
        kind: 'file',
        fileId: readString(annotation['file_id']),
        filename: readString(annotation['filename']),
        index: index(annotation['type'] === 'file_citation' ? 'index' : 'start_index'),
      }
    default:
      return null
  }
}

export function readUsage(value: unknown): Usage | null {
  if (!isRecord(value)) return null
  const inputTokens = readCount(value['input_tokens']) ?? 0
  const outputTokens = readCount(value['output_tokens']) ?? 0
  const inputDetails = asRecord(value['input_tokens_details'])
  const outputDetails = asRecord(value['output_tokens_details'])
  return {
    inputTokens,
    cachedTokens: readCount(inputDetails['cached_tokens']) ?? 0,
    cacheWriteTokens: readCount(inputDetails['cache_write_tokens']) ?? 0,
    outputTokens,
    reasoningTokens: readCount(outputDetails['reasoning_tokens']) ?? 0,
    totalTokens: readCount(value['total_tokens']) ?? inputTokens + outputTokens,
  }
}
