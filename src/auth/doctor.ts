import { importJWK, type JWK } from 'jose'
import { fetchKeySetText, parseKeySet } from '#auth/jwks.ts'
import type { Config } from '#config/schema.ts'
import type { CheckGroup, CheckInputs } from '#doctor/check.ts'
import { type Finding, fail, ok, warn } from '#doctor/finding.ts'
import { placeOf, reasonOf } from '#doctor/format.ts'

/** The verification of bearer tokens. */
export const tokens: CheckGroup = {
  name: 'tokens',
  limitMs: () => 10_000,
  async check(inputs, signal) {
    const { secret, jwksUrl } = inputs.config.jwt
    return [
      ...(secret === undefined ? [] : [ok('token secret', `${Buffer.byteLength(secret)} bytes`)]),
      ...(jwksUrl === undefined ? [] : [await keySetFinding(inputs, jwksUrl, signal)]),
      ...(secret === undefined && jwksUrl === undefined ? [developmentFinding(inputs.config)] : []),
    ]
  },
}

/** With a development secret the server listens on loopback only, regardless of `host`. */
function developmentFinding({ host }: Config): Finding {
  const detail = /^(127(\.\d+){3}|::1|localhost)$/.test(host)
    ? 'a development secret in the data folder'
    : `a development secret in the data folder, so the server listens on 127.0.0.1 instead of ${host}`
  return warn(
    'tokens',
    detail,
    'For other users, set JWT_JWKS_URL, JWT_ISSUER and JWT_AUDIENCE of your identity provider, or JWT_SECRET.',
  )
}

async function keySetFinding(
  { config, fetch }: CheckInputs,
  url: string,
  signal: AbortSignal,
): Promise<Finding> {
  const check = 'token keys (JWKS)'
  const place = placeOf(url)
  const { algorithms } = config.jwt
  try {
    const { keys } = parseKeySet(await fetchKeySetText({ url, fetch }, signal))
    const usable = await Promise.all(keys.map((key) => isUsable(key, algorithms)))
    const count = usable.filter(Boolean).length
    const detail = `${place} has ${keys.length} keys, ${count} usable with ${algorithms.join(', ')}`
    if (count > 0) return ok(check, detail)
    return fail(
      check,
      detail,
      'Set jwt.algorithms to the signature algorithm of the identity provider.',
    )
  } catch (error) {
    return fail(
      check,
      `${place}: ${reasonOf(error)}`,
      'Allow connections to the identity provider, or correct JWT_JWKS_URL; until then no token is accepted.',
    )
  }
}

async function isUsable(key: JWK, algorithms: readonly string[]): Promise<boolean> {
  if (key.use !== undefined && key.use !== 'sig') return false
  if (key.alg !== undefined) return algorithms.includes(key.alg) && canImport(key, key.alg)
  const imported = await Promise.all(algorithms.map((algorithm) => canImport(key, algorithm)))
  return imported.includes(true)
}

async function canImport(key: JWK, algorithm: string): Promise<boolean> {
  try {
    return (await importJWK(key, algorithm)) instanceof CryptoKey
  } catch {
    return false
  }
}
