import { hasText, text } from '../../texts/texts.ts'
import { humanize, type Schema } from './schema.ts'

/** The name of a field: in the language of the page if it is known, otherwise that of the schema. */
export function labelOf(name: string, schema: Schema): string {
  const key = `limit.${name}`
  return hasText(key) ? text(key) : (schema.title ?? humanize(name))
}
