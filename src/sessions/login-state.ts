import { asRecord, parseJson } from '#lib/json.ts'
import type { Sealer } from '#sealing/sealer.ts'

/** What the browser keeps, encrypted, between the start of a login and its callback. */
export type LoginState = {
  readonly state: string
  readonly nonce: string
  /** Of PKCE. */
  readonly verifier: string
  readonly returnTo: string
  readonly origin: string
  readonly startedAtMs: number
  /**
   * The hash of the session that the browser had, in hex; empty for none. Its cookie, which is strict, is
   * not sent with the callback.
   */
  readonly former: string
}

/** How long a login at the provider may take. */
export const loginMaxS = 600
const owner = 'browser'

export function sealLoginState(sealer: Sealer, state: LoginState): string {
  return sealer.seal('login', owner, JSON.stringify(state))
}

/** Null for a text of another gateway, an altered one, or one that is too old. */
export function openLoginState(sealer: Sealer, sealed: string, now: Date): LoginState | null {
  let plain: string | null
  try {
    plain = sealer.open('login', owner, sealed)
  } catch {
    return null
  }
  if (plain === null) return null
  const { state, nonce, verifier, returnTo, origin, startedAtMs, former } = asRecord(
    parseJson(plain),
  )
  if (now.getTime() - Number(startedAtMs) > loginMaxS * 1000) return null
  return {
    state: String(state),
    nonce: String(nonce),
    verifier: String(verifier),
    returnTo: String(returnTo),
    origin: String(origin),
    startedAtMs: Number(startedAtMs),
    former: String(former),
  }
}

const consolePath = '/console/'

/** A path of the console; anything else, such as another host, becomes its start page. */
export function readReturnTo(text: string | null | undefined): string {
  if (!text) return consolePath
  const base = 'http://gateway'
  if (!URL.canParse(text, base)) return consolePath
  // Parsed as a browser does it: a backslash is a slash, and tabs do not count.
  const { origin, pathname, search } = new URL(text, base)
  return origin === base && pathname.startsWith(consolePath) ? pathname + search : consolePath
}
