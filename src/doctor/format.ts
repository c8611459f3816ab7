/** Formatting of values in findings. */

const megabyte = 1_000_000
const gigabyte = 1_000_000_000

/** Without credentials and query. */
export function placeOf(url: string): string {
  if (!URL.canParse(url)) return 'an invalid URL'
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`
}

/** The message of an error and of its causes, without repetition. */
export function reasonOf(error: unknown): string {
  const messages: string[] = []
  for (let at = error; at instanceof Error && messages.length < 3; at = at.cause) {
    const code = 'code' in at && typeof at.code === 'string' ? at.code : ''
    const text = [at.message, code].filter((part) => part !== '').join(', ')
    if (text !== '' && !messages.includes(text)) messages.push(text)
  }
  const sentence = messages.map((part) => part.replace(/\.$/, '')).join(': ')
  return (sentence === '' ? String(error) : sentence).replaceAll('\n', ' ')
}

export function sizeOf(bytes: number): string {
  if (bytes >= gigabyte) return `${(bytes / gigabyte).toFixed(1)} GB`
  return `${Math.floor(bytes / megabyte)} MB`
}

export function secondsOf(ms: number): string {
  return `${(Math.abs(ms) / 1_000).toFixed(1)} s`
}
