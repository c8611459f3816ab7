import type { Citation, Usage } from '#inference/events.ts'
import {
  readCount,
  readNumber,
  readRecords,
  readString,
  readText,
} from '#inference/upstream-fields.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import type { TextLabel } from './wire.ts'

export type TextContent = {
  label: TextLabel
  text: string
  annotations: readonly JsonObject[]
  logprobs: unknown
}

/**
 * The parts that carry text, in order: of a message's `content`, or, with `carrier`, of a reasoning
 * item's `content` or `summary`.
 */
export function readContents(value: unknown, carrier?: 'raw' | 'summary'): TextContent[] {
  const isText = typeof value === 'string' && carrier === undefined
  return (isText ? [{ text: value }] : readRecords(value)).flatMap((part: JsonObject) => {
    const refusal = carrier === undefined ? readText(part['refusal']) : null
    const text = refusal ?? readText(part['text'])
    if (text === null) return []
    const label = carrier ?? (refusal === null ? 'answer' : 'refusal')
    const annotations = readRecords(part['annotations'])
    return [{ label, text, annotations, logprobs: part['logprobs'] }]
  })
}

export function charsOf(contents: readonly TextContent[]): number {
  return contents.reduce((sum, { text }) => sum + text.length, 0)
}

/** The characters of text in a message or reasoning item; of the two carriers, the longer counts. */
export function textCharsOf({ type, content, summary }: JsonObject): number {
  if (type === 'message') return charsOf(readContents(content))
  return Math.max(charsOf(readContents(summary, 'summary')), charsOf(readContents(content, 'raw')))
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
      return { ...readFile(annotation), index: index('index') }
    case 'container_file_citation': {
      const container = { id: readString(annotation['container_id']), endIndex: index('end_index') }
      return { ...readFile(annotation), index: index('start_index'), container }
    }
    default:
      return null
  }
}

function readFile({ file_id, filename }: JsonObject) {
  return { kind: 'file', fileId: readString(file_id), filename: readString(filename) } as const
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
