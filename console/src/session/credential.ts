/**
 * What proves who is calling: a session cookie, which scripts cannot read, or a pasted token, which is
 * kept in memory only.
 */
let token: string | null = null
let onExpired = () => {}

export const credential = {
  headers(method: string): Record<string, string> {
    if (token !== null) return { authorization: `Bearer ${token}` }
    // Pages of other sites cannot send this header, so a cookie alone changes nothing.
    return method === 'GET' || method === 'HEAD' ? {} : { 'x-sluice-csrf': '1' }
  },
  /** WebSockets cannot send headers; with a cookie they need none. */
  token: () => token,
  useToken(value: string) {
    token = value
  },
  clear() {
    token = null
  },
  /** Called when the API refuses the credential. */
  expired: () => onExpired(),
  whenExpired(callback: () => void) {
    onExpired = callback
  },
}
