import type { AuditEntry } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { Differences } from '../../ui/differences.tsx'

type Changes = AuditEntry['changes']

function textOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  // The items of a list are compared more easily line by line.
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object')) {
    return value.join('\n')
  }
  return JSON.stringify(value, null, 2)
}

/** The fields that differ, before and after. */
export function Diff({ changes }: { changes: Changes }) {
  const { before, after } = changes
  return (
    <Differences
      label={text('audit.changes')}
      none={text('audit.no_fields')}
      differences={fieldsOf(changes).map((name) => ({
        name,
        before: textOf(before?.[name]),
        after: textOf(after?.[name]),
      }))}
    />
  )
}

/** The name of the resource, if the entry has it. */
export function nameIn({ before, after }: Changes): string | null {
  const name = after?.['name'] ?? before?.['name']
  return typeof name === 'string' ? name : null
}

/** What changed, in one line: the names of the fields. */
export function summaryOf(changes: Changes): string {
  return fieldsOf(changes).join(', ')
}

function fieldsOf({ before, after }: Changes): readonly string[] {
  return [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
}
