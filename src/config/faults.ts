import { existsSync } from 'node:fs'
import { isUrl, webProtocols } from '#lib/url.ts'
import { localUpstreamName } from './llama.ts'
import { portalFaults } from './portal.ts'
import type { Config } from './schema.ts'

/** Rules between keys, which the schema cannot express; one line per fault. */
export function configFaults(config: Config): string[] {
  return [
    ...jwtFaults(config),
    ...processFaults(config),
    ...upstreamFaults(config),
    ...mcpServerFaults(config),
    ...modelFaults(config),
    ...engineNameFaults(config),
    ...portalFaults(config),
  ]
}

/** HS256 needs a key of at least the size of its hash (RFC 7518, 3.2). */
const jwtSecretBytesMin = 32

function* jwtFaults({ jwt }: Config): Generator<string> {
  if (jwt.secret !== undefined && Buffer.byteLength(jwt.secret) < jwtSecretBytesMin) {
    yield `jwt.secret (JWT_SECRET): at least ${jwtSecretBytesMin} bytes are required.`
  }
  if (jwt.jwksUrl === undefined) return
  if (jwt.issuer === undefined) yield 'jwt.issuer (JWT_ISSUER): required with jwks_url.'
  if (jwt.audience === undefined) yield 'jwt.audience (JWT_AUDIENCE): required with jwks_url.'
  if (!URL.canParse(jwt.jwksUrl)) yield 'jwt.jwks_url (JWT_JWKS_URL): not a URL.'
}

const sealKeyCharsMin = 32

function* processFaults(config: Config): Generator<string> {
  if (config.workers > 1 && config.databaseUrl === undefined) {
    yield 'workers (SLUICE_WORKERS): more than one requires DATABASE_URL.'
  }
  const sealKeys = config.sealKeys?.split(',') ?? []
  if (sealKeys.some((key) => key.trim().length < sealKeyCharsMin)) {
    yield `seal_keys (SLUICE_SEAL_KEYS): each key must have at least ${sealKeyCharsMin} characters.`
  }
}

function* upstreamFaults({ upstream }: Config): Generator<string> {
  const names = new Set<string>()
  for (const [at, { name }] of upstream.entries()) {
    if (names.has(name)) yield `upstream.${at}.name: "${name}" is used twice.`
    names.add(name)
  }
}

function* mcpServerFaults({ mcpServer }: Config): Generator<string> {
  const labels = new Set<string>()
  for (const [at, { label, url }] of mcpServer.entries()) {
    const where = `mcp_server.${at}`
    if (labels.has(label)) yield `${where}.label: "${label}" is used twice.`
    labels.add(label)
    if (!/^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/.test(label)) {
      yield `${where}.label: must be a letter followed by up to 63 letters, digits, _ or -.`
    }
    if (!isUrl(url, webProtocols)) {
      yield `${where}.url: must be an http or https URL without credentials.`
    }
  }
}

function* modelFaults({ model, upstream, llama }: Config): Generator<string> {
  const upstreams = new Set(upstream.map(({ name }) => name))
  if (llama.enabled) upstreams.add(localUpstreamName)
  const names = new Set<string>()
  for (const [at, { name, aliases, tokenizer, upstreams: servedBy }] of model.entries()) {
    for (const spelling of [name, ...aliases]) {
      if (names.has(spelling)) yield `model.${at}: the name "${spelling}" is used twice.`
      names.add(spelling)
    }
    if (tokenizer !== undefined && !existsSync(tokenizer)) {
      yield `model.${at}.tokenizer: there is no file ${tokenizer}.`
    }
    for (const name of servedBy) {
      if (!upstreams.has(name)) yield `model.${at}.upstreams: no upstream "${name}".`
    }
  }
}

function* engineNameFaults({ engine }: Config): Generator<string> {
  const names = new Set<string>()
  for (const [at, { name }] of engine.entries()) {
    if (names.has(name)) yield `engine.${at}.name: "${name}" is used twice.`
    names.add(name)
  }
}
