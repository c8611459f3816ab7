import { existsSync, readFileSync } from 'node:fs'
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { Value, ValueErrorType } from '@sinclair/typebox/value'
import { authFaults } from '#auth/config.ts'
import { hostedToolFaults } from '#hosted-tools/config.ts'
import { deepFreeze } from '#lib/frozen.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { suggestionFor } from '#lib/suggestion.ts'
import { modelsFaults } from '#models/config.ts'
import { sealingFaults } from '#sealing/config.ts'
import { loginFaults } from '#sessions/config.ts'
import { speechFaults } from '#speech/config.ts'
import { tlsFaults } from '#tls/config.ts'
import { translationsFaults } from '#translations/config.ts'
import { adoptFormerNames } from './former-names.ts'
import { isObjectSchema } from './keys.ts'
import { type Config, type ConfigSource, configSchema } from './schema.ts'
import { unknownVariables } from './unknown-variables.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Every fault of a configuration, one line per key. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(`The configuration is not valid:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`)
    this.faults = faults
  }
}

/** Rules of a feature for its keys beyond their schema; yields one line per fault. */
export type ConfigCheck = (config: Config) => Iterable<string>

const keyChecks: readonly ConfigCheck[] = [
  authFaults,
  loginFaults,
  processFaults,
  tlsFaults,
  sealingFaults,
  modelsFaults,
  hostedToolFaults,
  speechFaults,
  translationsFaults,
]

/** The configuration of this process. Only this file reads the environment. */
export function loadConfigFromProcess(checks: readonly ConfigCheck[]): Config {
  return loadConfig(process.env, checks)
}

/** The environment of this process with additions, for a child process. */
export function childEnvironment(added: Record<string, string>): Environment {
  return { ...process.env, ...added }
}

/** npm and npx set this for what they run, and `bun run` passes it on. */
export function isStartedByNpm(): boolean {
  return process.env['npm_config_user_agent']?.startsWith('npm/') === true
}

/** The environment of an operator's program, without the configuration of this process. */
export function programEnvironment(): Environment {
  return { PATH: process.env['PATH'] }
}

/** The same for our own compute processes, with the paths of libraries and devices. */
export function computeEnvironment(): Environment {
  const names = ['PATH', 'HOME', 'LD_LIBRARY_PATH', 'CUDA_VISIBLE_DEVICES', 'SystemRoot']
  return Object.fromEntries(names.map((name) => [name, process.env[name]]))
}

/** Loads and validates file and environment; throws one `ConfigError` with every fault. */
export function loadConfig(given: Environment, checks: readonly ConfigCheck[] = []): Config {
  const faults: string[] = []
  const values = readFile(given, faults)
  faults.push(...unknownVariables(given, values))
  const adopting = { values, environment: given, toSnake }
  const { environment, formerNames } = adoptFormerNames(configSchema, adopting)
  const sources: Record<string, ConfigSource> = {}
  overlayEnvironment(configSchema, { values, environment, path: '', sources })
  overlayUpstream(values, environment)
  overlayEngine(values, environment)
  const config = Value.Default(configSchema, values)
  faults.push(...schemaFaults(config))
  // Rules between valid keys are checked even if other keys are invalid.
  const checked = Value.Check(configSchema, config) ? config : Value.Cast(configSchema, config)
  const usable: Config = { ...checked, sources, formerNames }
  readKeyVariables(usable, environment, faults)
  faults.push(...[...keyChecks, ...checks].flatMap((check) => [...check(usable)]))
  if (faults.length > 0) throw new ConfigError([...new Set(faults)])
  return deepFreeze(usable)
}

/** A copy for display, with secrets replaced by "[redacted]". */
export function redactConfig({ sources: _, formerNames: __, ...values }: Config): unknown {
  return redactBy(configSchema, values)
}

/** With the snake_case keys of the file. */
export function toFileKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toFileKeys)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [toSnake(key), toFileKeys(item)]),
  )
}

function readFile(environment: Environment, faults: string[]): JsonObject {
  const named = environment['SLUICE_CONFIG']
  const path = named ?? './sluice.toml'
  if (!existsSync(path)) {
    if (named !== undefined) faults.push(`SLUICE_CONFIG: no such file: ${path}`)
    return {}
  }
  try {
    const parsed: unknown = Bun.TOML.parse(readFileSync(path, 'utf8'))
    const values = fromFile(configSchema, parsed)
    return isRecord(values) ? values : {}
  } catch (error) {
    faults.push(`${path} is not valid TOML: ${error instanceof Error ? error.message : error}`)
    return {}
  }
}

/** Converts snake_case keys of the file to camelCase if the schema names them; keys of maps stay. */
function fromFile(schema: TSchema, value: unknown): unknown {
  if (schema['type'] === 'array' && Array.isArray(value)) {
    return value.map((item) => fromFile(schema['items'], item))
  }
  if (!isObjectSchema(schema) || !isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const name = toCamel(key)
      const known = schema.properties[name]
      return known === undefined ? [key, item] : [name, fromFile(known, item)]
    }),
  )
}

/** Applies environment variables and records the source of each key. */
function overlayEnvironment(
  schema: TObject,
  context: {
    values: JsonObject
    environment: Environment
    path: string
    sources: Record<string, ConfigSource>
  },
): void {
  for (const [key, property] of Object.entries(schema.properties)) {
    const path = context.path + toSnake(key)
    if (isObjectSchema(property)) {
      const section = context.values[key] ?? {}
      context.values[key] = section
      if (isRecord(section)) {
        overlayEnvironment(property, { ...context, values: section, path: `${path}.` })
      }
      continue
    }
    const variable: unknown = property['env']
    const text = typeof variable === 'string' ? context.environment[variable] : undefined
    if (text !== undefined && text !== '') {
      context.values[key] = fromText(property, text)
      context.sources[path] = { kind: 'environment', variable: String(variable) }
    } else if (context.values[key] !== undefined) {
      context.sources[path] = { kind: 'file' }
    }
  }
}

/** Converts numbers; any other text fails validation. */
function fromText(schema: TSchema, text: string): unknown {
  const isNumber =
    (schema['type'] === 'integer' && /^-?\d+$/.test(text)) ||
    (schema['type'] === 'number' && /^-?\d+(\.\d+)?$/.test(text))
  return isNumber ? Number(text) : text
}

/** SLUICE_UPSTREAM_URL and its companions: one upstream without a file. */
function overlayUpstream(values: JsonObject, environment: Environment): void {
  const url = environment['SLUICE_UPSTREAM_URL']
  if (!url) return
  const listed = Array.isArray(values['upstream']) ? values['upstream'] : []
  const api = environment['SLUICE_UPSTREAM_API']
  const key = environment['SLUICE_UPSTREAM_KEY']
  values['upstream'] = [
    ...listed,
    { name: 'default', url, ...(api ? { api } : {}), ...(key ? { key } : {}) },
  ]
}

/** SLUICE_STT_URL and SLUICE_STT_ENGINE: one speech engine without a file. */
function overlayEngine(values: JsonObject, environment: Environment): void {
  const place = environment['SLUICE_STT_URL']
  const kind = environment['SLUICE_STT_ENGINE']
  if (!place && !kind) return
  const listed = Array.isArray(values['engine']) ? values['engine'] : []
  // For a program the URL is its command line.
  const where = kind === 'exec' ? { command: place?.split(/ +/) ?? [] } : { url: place }
  values['engine'] = [...listed, { name: 'default', kind: kind || 'openai-realtime', ...where }]
}

function schemaFaults(config: unknown): string[] {
  const faults: string[] = []
  for (const error of Value.Errors(configSchema, config)) {
    const name = error.path.slice(1).split('/').map(toSnake).join('.')
    const { env, description } = error.schema
    const source = typeof env === 'string' ? ` (${env})` : ''
    faults.push(
      error.type === ValueErrorType.ObjectAdditionalProperties
        ? `${name}: unknown key${suggestKey(error.schema, name)}`
        : `${name}${source}: ${faultOf(error.schema, error.message)} ${description ?? ''}`.trimEnd(),
    )
  }
  return faults
}

function suggestKey(schema: TSchema, path: string): string {
  const keys = isObjectSchema(schema) ? Object.keys(schema.properties).map(toSnake) : []
  return suggestionFor(path.split('.').at(-1) ?? '', keys)
}

function faultOf(schema: TSchema, otherwise: string): string {
  const choices: unknown = schema['anyOf']
  if (!Array.isArray(choices)) return `${otherwise.toLowerCase()}.`
  return `expected one of ${choices.map((choice: TSchema) => choice['const']).join(', ')}.`
}

function* processFaults(config: Config): Generator<string> {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):/i.exec(config.databaseUrl ?? '') ?? []
  if (config.databaseUrl !== undefined && !/^postgres(ql)?$/i.test(scheme ?? '')) {
    yield `database_url (DATABASE_URL): ${scheme === undefined ? 'not a URL' : `${scheme}:// is not supported`}; did you mean postgres://USER:PASSWORD@HOST/DATABASE?`
  }
  if (config.workers > 1 && config.databaseUrl === undefined) {
    yield 'workers (SLUICE_WORKERS): more than one requires DATABASE_URL.'
  }
}

function readKeyVariables(config: Config, environment: Environment, faults: string[]): void {
  const named = { upstream: config.upstream, mcp_server: config.mcpServer, engine: config.engine }
  for (const [section, entries] of Object.entries(named)) {
    entries.forEach((entry, at) => {
      if (entry.keyEnv === undefined) return
      const key = environment[entry.keyEnv]
      if (key) entry.key = key
      else faults.push(`${section}.${at}.key_env: the variable ${entry.keyEnv} is not set.`)
    })
  }
}

function redactBy(schema: TSchema, value: unknown): unknown {
  if (value === undefined) return undefined
  if (schema['secret'] === true) {
    return isRecord(value) ? Object.fromEntries(Object.keys(value).map(hide)) : '[redacted]'
  }
  if (schema['type'] === 'array' && Array.isArray(value)) {
    return value.map((item) => redactBy(schema['items'], item))
  }
  if (!isObjectSchema(schema) || !isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      redactBy(schema.properties[key] ?? Type.Unknown(), item),
    ]),
  )
}

function hide(name: string): [string, string] {
  return [name, '[redacted]']
}

function toSnake(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function toCamel(key: string): string {
  return key.replace(/_([a-z])/g, (_found, letter: string) => letter.toUpperCase())
}
