import { assertNever } from '#lib/assert.ts'
import type { ContentPart, RequestItem } from './request.ts'

/** How much text a model would read; images, files and sealed payloads are not text. */
export function countChars(items: readonly RequestItem[]): number {
  let chars = 0
  for (const item of items) {
    switch (item.type) {
      case 'message':
      case 'tool-result':
        chars += countPartChars(item.parts)
        break
      case 'tool-call':
        chars += item.arguments.length
        break
      case 'reasoning':
        chars += item.text.length + item.summary.reduce((sum, part) => sum + part.length, 0)
        break
      default:
        assertNever(item)
    }
  }
  return chars
}

function countPartChars(parts: readonly ContentPart[]): number {
  let chars = 0
  for (const part of parts) {
    if (part.type === 'text' || part.type === 'refusal') chars += part.text.length
  }
  return chars
}
