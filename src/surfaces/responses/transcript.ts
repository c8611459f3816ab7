import type { ContentPart, RequestItem } from '#inference/request.ts'
import { assertNever } from '#lib/assert.ts'

/** Maximum length of one entry, in characters. */
const messageCharsMax = 65_536
const resultCharsMax = 16_384
const argumentsCharsMax = 8_192
const reasoningCharsMax = 4_096

/** Renders items as text for any model; long entries are shortened in the middle. */
export function renderTranscript(items: readonly RequestItem[]): string {
  return items.flatMap(renderItem).join('\n\n')
}

function renderItem(item: RequestItem): string[] {
  switch (item.type) {
    case 'message':
      return [`[${item.role}]\n${shorten(renderParts(item.parts), messageCharsMax)}`]
    case 'tool-call': {
      const text = shorten(item.arguments, argumentsCharsMax)
      return [`[assistant calls the tool ${item.name}, ${item.callId}]\n${text}`]
    }
    case 'tool-result': {
      const text = shorten(renderParts(item.parts), resultCharsMax)
      return [`[result of the tool call ${item.callId}]\n${text}`]
    }
    case 'reasoning': {
      const text = item.text === '' ? item.summary.join('\n\n') : item.text
      return text === '' ? [] : [`[assistant thinks]\n${shorten(text, reasoningCharsMax)}`]
    }
    case 'native': {
      const text = shorten(JSON.stringify(item.value), argumentsCharsMax)
      return [`[${String(item.value['type'])}]\n${text}`]
    }
    default:
      return assertNever(item)
  }
}

function renderParts(parts: readonly ContentPart[]): string {
  return parts.map(describePart).join('\n')
}

/** A part as text; images and files are only named. */
export function describePart(part: ContentPart): string {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return part.text
    case 'image':
      return '[an image]'
    case 'file':
      return part.filename === null ? '[a file]' : `[the file ${part.filename}]`
    default:
      return assertNever(part)
  }
}

/** Keeps the beginning and the end, which matter most. */
function shorten(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  const headChars = Math.floor((charsMax * 3) / 4)
  const tailChars = charsMax - headChars
  const omitted = text.length - charsMax
  return `${text.slice(0, headChars)}\n[${omitted} characters omitted]\n${text.slice(-tailChars)}`
}
