/** How things are called in findings. */

const megabyte = 1_000_000
const gigabyte = 1_000_000_000

/** Without credentials and without a query, which may hold one. */
export function placeOf(url: string): string {
  if (!URL.canParse(url)) return 'what is no URL'
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`
}

/** What an error says, with what caused it, as far as that says something else. */
export function reasonOf(error: unknown): string {
  const said: string[] = []
  for (let at = error; at instanceof Error && said.length < 3; at = at.cause) {
    const code = 'code' in at && typeof at.code === 'string' ? at.code : ''
    const words = [at.message, code].filter((word) => word !== '').join(', ')
    if (words !== '' && !said.includes(words)) said.push(words)
  }
  const sentence = said.map((part) => part.replace(/\.$/, '')).join(': ')
  return (sentence === '' ? String(error) : sentence).replaceAll('\n', ' ')
}

export function sizeOf(bytes: number): string {
  if (bytes >= gigabyte) return `${(bytes / gigabyte).toFixed(1)} GB`
  return `${Math.floor(bytes / megabyte)} MB`
}

export function secondsOf(ms: number): string {
  return `${(Math.abs(ms) / 1_000).toFixed(1)} s`
}
