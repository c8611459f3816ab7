import type { ReasoningItem } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'
import type { ReasoningSeal, TextSeal } from '#sealing/seals.ts'
import { type Compaction, readCompaction } from './compacted-context.ts'
import { readObject } from './read-object.ts'
import { textPart } from './schema/content.ts'
import { compactionItem, reasoningItem } from './schema/input-items.ts'

/** Input items with encrypted content. */

/**
 * Parses reasoning of an earlier turn. `encrypted_content` of this gateway is decrypted; that of
 * another service is forwarded. Returns `empty` for an item without content.
 */
export function parseReasoning(
  value: unknown,
  path: string,
  seal: ReasoningSeal,
): ReasoningItem | 'empty' {
  const item = readObject(reasoningItem, value, path)
  const summary = readTexts(item.summary, `${path}.summary`)
  const disclosed = readTexts(item.content, `${path}.content`).join('\n\n')
  const { text, ...payload } = openReasoning(item.encrypted_content, path, seal)
  if (summary.length === 0 && disclosed === '' && text === '' && payload.sealed === undefined) {
    return 'empty'
  }
  return { type: 'reasoning', summary, text: text === '' ? disclosed : text, ...payload }
}

function openReasoning(
  sealed: string | undefined,
  path: string,
  seal: ReasoningSeal,
): Pick<ReasoningItem, 'text' | 'sealed' | 'sealedBy'> {
  if (sealed === undefined) return { text: '' }
  const opened = openAt(`${path}.encrypted_content`, () => seal.open(sealed))
  if (opened === null) return { text: '', sealed }
  const { text, payload, maker } = opened
  return {
    text,
    ...(payload === null ? {} : { sealed: payload }),
    ...(maker === null ? {} : { sealedBy: maker }),
  }
}

function readTexts(parts: readonly unknown[] = [], path: string): string[] {
  return parts.map((part, index) => readObject(textPart, part, `${path}[${index}]`).text)
}

/**
 * Parses a compaction item. One of another service is refused, because most of the conversation would
 * be missing without its content.
 */
export function parseCompaction(value: unknown, path: string, seal: TextSeal): Compaction {
  const param = `${path}.encrypted_content`
  const sealed = readObject(compactionItem, value, path).encrypted_content
  const plain = openAt(param, () => seal.open(sealed))
  const compaction = plain === null ? null : readCompaction(plain)
  if (compaction !== null) return compaction
  throw new AppError(
    'invalid_encrypted_content',
    'The compaction was created by another service and cannot be decrypted.',
    { param },
  )
}

/** Adds the field to the error of encrypted content that cannot be opened. */
function openAt<T>(param: string, open: () => T): T {
  try {
    return open()
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new AppError(error.kind, error.message, { param, cause: error })
  }
}
