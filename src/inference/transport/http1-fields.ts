const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Whether a text can be the name of a header (RFC 9110, 5.6.2). */
export function isFieldName(text: string): boolean {
  return token.test(text)
}

/** Whether a text can be the value of a header: latin-1 without control characters but the tab. */
export function isFieldValue(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if ((code < 0x20 && code !== 0x09) || code === 0x7f || code > 0xff) return false
  }
  return true
}
