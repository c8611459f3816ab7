export const webProtocols: readonly string[] = ['http:', 'https:']

/** Whether a text is a URL of one of these protocols, without credentials in it. */
export function isUrl(text: string | undefined, protocols: readonly string[]): boolean {
  if (text === undefined || !URL.canParse(text)) return false
  const { protocol, username } = new URL(text)
  return protocols.includes(protocol) && username === ''
}

/** The text without percent-encoding; unchanged if that is malformed. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
