import type { ReasoningItem } from '#inference/request.ts'
import type { ReasoningSeal } from '#sealing/reasoning.ts'
import { openSealed } from './open-sealed.ts'
import { createReader } from './read-object.ts'
import { reasoningItem, textPart } from './schema.ts'

const readReasoning = createReader(reasoningItem)
const readText = createReader(textPart)

/**
 * Reasoning that is replayed. Its `encrypted_content` is opened where it is ours; that of another
 * service is passed on as it is, for its maker to open. `empty`: nothing in it to pass on.
 */
export function parseReasoning(
  value: unknown,
  path: string,
  seal: ReasoningSeal,
): ReasoningItem | 'empty' {
  const item = readReasoning(value, path)
  const summary = readTexts(item.summary, `${path}.summary`)
  const shown = readTexts(item.content, `${path}.content`).join('\n\n')
  const { text, ...payload } = readSealed(item.encrypted_content, path, seal)
  if (summary.length === 0 && shown === '' && text === '' && payload.sealed === undefined) {
    return 'empty'
  }
  return { type: 'reasoning', summary, text: text === '' ? shown : text, ...payload }
}

function readSealed(
  sealed: string | undefined,
  path: string,
  seal: ReasoningSeal,
): Pick<ReasoningItem, 'text' | 'sealed' | 'sealedBy'> {
  if (sealed === undefined) return { text: '' }
  const opened = openSealed(seal.open, sealed, `${path}.encrypted_content`)
  if (opened === null) return { text: '', sealed }
  const { text, payload, maker } = opened
  return {
    text,
    ...(payload === null ? {} : { sealed: payload }),
    ...(maker === null ? {} : { sealedBy: maker }),
  }
}

function readTexts(parts: readonly unknown[] = [], path: string): string[] {
  return parts.map((part, index) => readText(part, `${path}[${index}]`).text)
}
