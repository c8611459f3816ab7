/** One server-sent event with its data on one line. */
export function eventFrame(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${toLine(data)}\n\n`
}

/** JSON allows them unescaped, but clients on httpx treat each as the end of a line. */
const lineSeparator = /[\u0085\u2028\u2029]/
const lineSeparators = new RegExp(lineSeparator, 'g')

/** JSON that every client reads as one line. */
export function toLine(value: unknown): string {
  return withoutLineSeparators(JSON.stringify(value))
}

/** Escapes line separators in serialised JSON. */
export function withoutLineSeparators(json: string): string {
  return lineSeparator.test(json) ? json.replace(lineSeparators, escapeCharacter) : json
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
