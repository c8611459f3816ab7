import type { ContentPart, RequestItem, ToolCallItem } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'

export type FilePart = Extract<ContentPart, { type: 'file' }>

/** Precedes a system message that has to be sent as a part of a user message or a tool result. */
const lateSystemMarker = '[System instruction]'

export function markLateSystem(text: string): string {
  return `${lateSystemMarker}\n${text}`
}

/** The text of a message whose role carries only text. Throws `invalid_request` for other content. */
export function textOf(parts: readonly ContentPart[]): string {
  const [only] = parts
  if (parts.length === 1 && only?.type === 'text') return only.text
  return parts
    .map((part) => {
      if ('text' in part) return part.text
      throw new AppError('invalid_request', `Only a user message can hold ${part.type} content.`, {
        param: 'input',
      })
    })
    .join('')
}

/** Reasoning of an earlier turn as one text; its summary where the raw text was not returned. */
export function reasoningText(item: {
  readonly text: string
  readonly summary: readonly string[]
}): string {
  return item.text === '' ? item.summary.join('\n\n') : item.text
}

/** Whether reasoning is known to come from another target than this one. */
export function isMadeElsewhere({ sealedBy }: { sealedBy?: string }, targetName: string): boolean {
  return sealedBy !== undefined && sealedBy !== targetName
}

/** A file that the upstream cannot read. `canRead`: it reads files, but not from a URL. */
export function unreadableFile({ filename }: FilePart, canRead: boolean): AppError {
  const file = filename === null ? 'a file' : `the file ${filename}`
  return new AppError(
    'invalid_request',
    canRead
      ? `The model cannot fetch ${file} from a URL; send its content.`
      : `The model does not accept files, but the input contains ${file}.`,
    { param: 'input' },
  )
}

/** Splits the leading system messages from the other items. */
export function splitHead(items: readonly RequestItem[]): {
  head: readonly Extract<RequestItem, { type: 'message' }>[]
  rest: readonly RequestItem[]
} {
  const head: Extract<RequestItem, { type: 'message' }>[] = []
  for (const item of items) {
    if (item.type !== 'message' || (item.role !== 'system' && item.role !== 'developer')) break
    head.push(item)
  }
  return { head, rest: head.length === 0 ? items : items.slice(head.length) }
}

/** Tool arguments as an object. Text that is not one (truncated JSON, free text) becomes a field. */
export function argumentsObject({ form, arguments: text }: ToolCallItem): JsonObject {
  if (form === 'custom') return { input: text }
  if (text.trim() === '') return {}
  const parsed = parseJson(text)
  return isRecord(parsed) ? parsed : { input: text }
}
