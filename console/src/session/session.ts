import { signal } from '@preact/signals'
import { call, type ResponseOf } from '../api/call.ts'
import { ApiError, readError } from '../api/errors.ts'
import { base } from '../shell/router.ts'
import { credential } from './credential.ts'

export type Me = ResponseOf<'GET /v1/me'>
export type Permission = Me['permissions'][number]

type Session = {
  readonly user: Me | null
  readonly login: {
    readonly oidc: boolean
    readonly token: boolean
    readonly login_url: string | null
  }
}

/** `undefined` until it is known whether somebody is logged in. */
export const me = signal<Me | null | undefined>(undefined)
/** The ways to log in that this deployment offers. */
export const ways = signal<Session['login']>({ oidc: false, token: true, login_url: null })
/** Whether the last session ended by itself, which the login page explains. */
export const hasExpired = signal(false)
/** Why a link or the identity provider did not log anybody in. */
export const loginFault = signal<ApiError | null>(null)

credential.whenExpired(() => {
  if (me.value === null || me.value === undefined) return
  hasExpired.value = true
  credential.clear()
  me.value = null
})

export function may(permission: Permission): boolean {
  return me.value?.permissions.includes(permission) === true
}

/** Uses the one-time code of a printed link, then the session cookie. */
export async function openSession(): Promise<void> {
  const code = takeLinkedCode()
  if (code !== null && (await isLoggedIn({ code }))) return
  const response = await fetch('/v1/session').catch(() => null)
  const session = response?.ok ? ((await response.json()) as Session) : null
  if (session !== null) ways.value = session.login
  me.value = session?.user ?? null
}

async function isLoggedIn(given: { code: string }): Promise<boolean> {
  try {
    await createSession(given)
    return true
  } catch (error) {
    if (error instanceof ApiError) loginFault.value = error
    return false
  }
}

/** Exchanges a token or code for a session cookie. */
export async function createSession(given: { token: string } | { code: string }): Promise<void> {
  const response = await fetch('/v1/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...credential.headers('POST') },
    body: JSON.stringify(given),
  })
  if (!response.ok) throw await readError(response)
  const session = (await response.json()) as Session
  enter(session.user)
}

/** Uses a token or API key without a session: it is forgotten when the page is closed. */
export async function keepToken(token: string): Promise<void> {
  credential.useToken(token)
  try {
    enter(await call('GET /v1/me'))
  } catch (error) {
    credential.clear()
    throw error
  }
}

function enter(user: Me | null): void {
  hasExpired.value = false
  loginFault.value = null
  me.value = user
}

export function logInAtProvider(): void {
  const returnTo = location.pathname.startsWith(`${base}/login`)
    ? `${base}/`
    : location.pathname + location.search
  location.assign(`${ways.value.login_url}?return_to=${encodeURIComponent(returnTo)}`)
}

export async function logOut(): Promise<void> {
  const isCookie = credential.token() === null
  credential.clear()
  hasExpired.value = false
  me.value = null
  if (!isCookie) return
  const headers = credential.headers('DELETE')
  const response = await fetch('/v1/session', { method: 'DELETE', headers }).catch(() => null)
  const ended = response?.ok ? ((await response.json()) as { logout_url: string | null }) : null
  if (ended?.logout_url) location.assign(ended.logout_url)
}

/** `#code=…`: a fragment is never sent to a server. It is removed from the address at once. */
function takeLinkedCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (code !== null) history.replaceState(null, '', location.pathname + location.search)
  return code
}
