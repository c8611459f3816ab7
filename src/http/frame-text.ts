/** One server-sent event: its name, and its data in one line. */
export function eventFrame(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${toLine(data)}\n\n`
}

/** JSON may hold them as they are, but a client on httpx takes each for the end of a line. */
const lineSeparator = /[\u0085\u2028\u2029]/
const lineSeparators = new RegExp(lineSeparator, 'g')

/** A value as JSON that no client takes for more than one line. */
export function toLine(value: unknown): string {
  return withoutLineSeparators(JSON.stringify(value))
}

/** The same for JSON that is there already. */
export function withoutLineSeparators(json: string): string {
  return lineSeparator.test(json) ? json.replace(lineSeparators, escapeSign) : json
}

function escapeSign(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`
}
