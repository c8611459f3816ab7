import { Type } from '@sinclair/typebox'
import { section, text, whole } from '#config/keys.ts'
import type { Config } from '#config/schema.ts'

/** The keys of logins and of the sessions of browsers. */
export const loginKeys = {
  login: section(
    'Login of browsers at an identity provider (OpenID Connect), and their sessions.',
    {
      issuer: Type.Optional(
        text('Issuer of the identity provider; by default jwt.issuer.', {
          env: 'SLUICE_LOGIN_ISSUER',
        }),
      ),
      clientId: Type.Optional(
        text('Client id at the identity provider. Switches the login on.', {
          env: 'SLUICE_LOGIN_CLIENT_ID',
        }),
      ),
      clientSecret: Type.Optional(
        text('Client secret; absent for a public client.', {
          env: 'SLUICE_LOGIN_CLIENT_SECRET',
          secret: true,
        }),
      ),
      scopes: text('Requested scopes; add offline_access if refresh tokens need it.', {
        default: 'openid profile email',
      }),
      publicUrl: Type.Optional(
        text(
          'Origin of the gateway as browsers see it, such as https://gateway.example.org; required behind a proxy that ends TLS. By default that of each request.',
          { env: 'SLUICE_PUBLIC_URL' },
        ),
      ),
      sessionS: whole('Longest lifetime of a session.', {
        default: 86_400,
        minimum: 60,
        maximum: 7_776_000,
      }),
      idleS: whole('A session without requests ends after this time.', {
        default: 28_800,
        minimum: 300,
      }),
      deviceKeyS: whole('Validity of an API key that a device login creates.', {
        default: 7_776_000,
        minimum: 3_600,
      }),
      deviceRefreshS: whole(
        'How long after the expiry of such a key its device may renew it without a login (refresh token); 0: never.',
        { default: 2_592_000, minimum: 0 },
      ),
    },
  ),
}

/** Rules of these keys beyond the schema. */
export function* loginFaults({ login, jwt }: Config): Generator<string> {
  const { publicUrl, clientId, issuer = jwt.issuer } = login
  if (publicUrl !== undefined && originOf(publicUrl) === null) {
    yield 'login.public_url (SLUICE_PUBLIC_URL): an http or https URL without path is required.'
  }
  if (clientId === undefined) {
    if (login.issuer !== undefined) {
      yield 'login.client_id (SLUICE_LOGIN_CLIENT_ID): required with login.issuer.'
    }
    return
  }
  if (issuer === undefined) {
    yield 'login.issuer (SLUICE_LOGIN_ISSUER): required with client_id where jwt.issuer is not set.'
    return
  }
  if (!isSafeIssuer(issuer)) {
    yield 'login.issuer (SLUICE_LOGIN_ISSUER): an https URL is required; http only on loopback.'
  }
  // A user is identified by the subject alone, so two providers could issue the same user.
  if (jwt.jwksUrl !== undefined && jwt.issuer !== undefined && issuer !== jwt.issuer) {
    yield 'login.issuer (SLUICE_LOGIN_ISSUER): must be the same as jwt.issuer.'
  }
  if (!login.scopes.split(' ').includes('openid')) {
    yield 'login.scopes: must contain openid.'
  }
}

/** The origin of a URL that has nothing else; null for any other text. */
function originOf(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { origin, protocol, pathname, search, hash, username } = new URL(text)
  const isOrigin = pathname === '/' && search === '' && hash === '' && username === ''
  return /^https?:$/.test(protocol) && isOrigin ? origin : null
}

function isSafeIssuer(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname } = new URL(text)
  return protocol === 'https:' || (protocol === 'http:' && loopbackHost.test(hostname))
}

/** The host of a URL that only programs on this machine reach. */
export const loopbackHost = /^(127(\.\d{1,3}){3}|\[::1\]|localhost)$/
