import { Type } from '@sinclair/typebox'
import { reloading, reloadingKeys, section, text, whole } from '#config/keys.ts'
import type { Config } from '#config/schema.ts'
import { permissionNames } from './permissions.ts'

/** The keys of authentication and of groups. */
export const authKeys = {
  jwt: section('Verification of bearer tokens.', {
    ...reloadingKeys({
      secret: Type.Optional(
        Type.String({
          description: 'HS256 secret of tokens that you sign yourself; at least 32 bytes.',
          minLength: 1,
          env: 'JWT_SECRET',
          secret: true,
        }),
      ),
      formerSecret: Type.Optional(
        Type.String({
          description: 'The secret before a rotation; its tokens are accepted until you remove it.',
          minLength: 1,
          env: 'JWT_FORMER_SECRET',
          secret: true,
        }),
      ),
      jwksUrl: Type.Optional(
        text('Key set URL of the identity provider.', { env: 'JWT_JWKS_URL' }),
      ),
      audience: Type.Optional(
        text('Exact aud claim; required with jwks_url.', { env: 'JWT_AUDIENCE' }),
      ),
      algorithms: Type.Array(
        Type.String({ pattern: '^(RS|PS|ES)(256|384|512)$|^EdDSA$|^Ed25519$' }),
        {
          description: 'Allowed signature algorithms of jwks_url keys.',
          default: ['RS256', 'ES256', 'EdDSA'],
          minItems: 1,
        },
      ),
      jwksAgeMaxS: whole('How long the last key set is used while the provider is unreachable.', {
        default: 86_400,
        minimum: 60,
      }),
    }),
    issuer: Type.Optional(text('Exact iss claim; required with jwks_url.', { env: 'JWT_ISSUER' })),
    groupsClaim: text('Claim that lists the groups of the caller.', {
      default: 'groups',
      env: 'JWT_GROUPS_CLAIM',
    }),
    clockSkewS: Type.Integer({
      description: 'Allowed clock difference.',
      default: 30,
      minimum: 0,
      maximum: 60,
    }),
  }),
  apiKeys: section('API keys.', {
    pepper: Type.Optional(
      Type.String({
        description: 'HMAC key for stored API keys; changing it invalidates every key.',
        minLength: 16,
        env: 'SLUICE_KEY_PEPPER',
        secret: true,
      }),
    ),
    cacheMs: whole('How long a verified key is cached.', {
      default: 5_000,
      minimum: 0,
    }),
  }),
  groups: reloading(
    Type.Record(
      Type.String(),
      Type.Array(Type.Union(permissionNames.map((name) => Type.Literal(name)))),
      {
        description:
          'Permissions by group name. Predefined: admins has all, users has can_access_api. Groups listed here are overwritten at each start.',
        default: {},
      },
    ),
  ),
}

/** HS256 needs a key of at least the size of its hash (RFC 7518, 3.2). */
const jwtSecretBytesMin = 32

export function* authFaults({ jwt }: Config): Generator<string> {
  if (jwt.secret !== undefined && Buffer.byteLength(jwt.secret) < jwtSecretBytesMin) {
    yield `jwt.secret (JWT_SECRET): at least ${jwtSecretBytesMin} bytes are required.`
  }
  if (jwt.formerSecret !== undefined) {
    if (Buffer.byteLength(jwt.formerSecret) < jwtSecretBytesMin) {
      yield `jwt.former_secret (JWT_FORMER_SECRET): at least ${jwtSecretBytesMin} bytes are required.`
    }
    if (jwt.secret === undefined) {
      yield 'jwt.former_secret (JWT_FORMER_SECRET): requires jwt.secret.'
    }
  }
  if (jwt.jwksUrl === undefined) return
  if (jwt.issuer === undefined) yield 'jwt.issuer (JWT_ISSUER): required with jwks_url.'
  if (jwt.audience === undefined) yield 'jwt.audience (JWT_AUDIENCE): required with jwks_url.'
  if (!URL.canParse(jwt.jwksUrl)) yield 'jwt.jwks_url (JWT_JWKS_URL): not a URL.'
}
