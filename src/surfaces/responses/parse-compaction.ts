import { AppError } from '#lib/errors.ts'
import type { TextSeal } from '#sealing/seals.ts'
import { type Compaction, readCompaction } from './compacted-context.ts'
import type { CompactionRules } from './compaction.ts'
import { openSealed } from './open-sealed.ts'
import { createReader } from './read-object.ts'
import { compactionItem, contextManagementEntry } from './schema.ts'

const readItem = createReader(compactionItem)
const readEntry = createReader(contextManagementEntry)

/** Without what it holds most of a conversation would be missing, so another's is refused. */
export function parseCompaction(value: unknown, path: string, seal: TextSeal): Compaction {
  const param = `${path}.encrypted_content`
  const plain = openSealed(seal.open, readItem(value, path).encrypted_content, param)
  const compaction = plain === null ? null : readCompaction(plain)
  if (compaction !== null) return compaction
  throw new AppError(
    'invalid_encrypted_content',
    'The compaction was not made here, so nobody here can open it.',
    { param },
  )
}

/** `context_management`; entries of other types than `compaction` are not known yet. */
export function parseThreshold(entries: readonly unknown[] = []): CompactionRules['threshold'] {
  const read = entries.map((entry, index) => readEntry(entry, `context_management[${index}]`))
  const rule = read.find(({ type }) => type === 'compaction')
  return rule === undefined ? null : (rule.compact_threshold ?? 'by-model')
}
