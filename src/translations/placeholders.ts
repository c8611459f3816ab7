/** What must stand in a text whatever its language: values that are filled in, and tags. */

export type Difference = {
  /** What the portal's own text has and this one lacks, and the other way round. */
  readonly missing: readonly string[]
  readonly unexpected: readonly string[]
}

/** How a text differs from the one that it stands in place of; null where all is there. */
export function compareMarks(own: string, text: string): Difference | null {
  const [expected, found] = [marksOf(own), marksOf(text)]
  const missing = [...expected].filter((mark) => !found.has(mark))
  const unexpected = [...found].filter((mark) => !expected.has(mark))
  return missing.length + unexpected.length === 0 ? null : { missing, unexpected }
}

/** `{{name}}`, `{{- name, format}}`, `{name}`. */
const value = /\{\{?-? *([\p{L}\p{N}_$.@-]+) *(?:,[^{}]*)?\}/gu
/** `{count, plural, one {…} other {…}}`: its branches are the language's own affair. */
const choice = /\{ *([\p{L}\p{N}_$.@-]+) *, *(?:plural|select|selectordinal) *,/gu
const tag = /<(\/?)([\p{L}\p{N}][\p{L}\p{N}_.:-]*)[^<>]*>/gu

function marksOf(text: string): ReadonlySet<string> {
  const choices = [...text.matchAll(choice)].map(([, name]) => `{${name}}`)
  const values = [...text.matchAll(value)].map(([, name]) => `{${name}}`)
  const tags = [...text.matchAll(tag)].map(([, slash, name]) => `<${slash}${name}>`)
  return new Set([...(choices.length > 0 ? choices : values), ...tags])
}
