import { isRecord } from '#lib/json.ts'
import { parseTexts } from './parse-content.ts'
import type { Content } from './reading.ts'

/**
 * A coding client puts a note for its vendor's accounts in front of its system prompt. Part of it
 * changes with each request, so that no upstream could use a prompt again that begins with it.
 */
const billingNote = 'x-anthropic-billing-header:'

/** `system` of a request as one text; null where it says nothing. */
export function parseSystem(system: Content | undefined): string | null {
  if (system === undefined) return null
  const texts = parseTexts(typeof system === 'string' ? system : system.map(withoutNote), 'system')
  return texts.length === 0 ? null : texts.join('\n\n')
}

/** An empty text stays in its place, so that the places of the others are still right. */
function withoutNote(block: unknown): unknown {
  const text = isRecord(block) ? block['text'] : null
  const isNote = typeof text === 'string' && text.startsWith(billingNote)
  return isNote ? { type: 'text', text: '' } : block
}
