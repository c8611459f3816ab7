import { existsSync, readFileSync } from 'node:fs'
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { Value, ValueErrorType } from '@sinclair/typebox/value'
import { deepFreeze } from '#lib/frozen.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { contradictions } from './contradictions.ts'
import { type Config, type ConfigSource, configSchema } from './schema.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Everything that is wrong with a configuration, one line a key. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(`The configuration is not valid:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`)
    this.faults = faults
  }
}

/** What a feature requires of its keys beyond their schema; yields one line for each fault. */
export type ConfigCheck = (config: Config) => Iterable<string>

/** The configuration of this process; the only place that reads its environment. */
export function loadConfigFromProcess(checks: readonly ConfigCheck[]): Config {
  return loadConfig(process.env, checks)
}

/** The environment of this process with more in it, for a child. */
export function childEnvironment(added: Record<string, string>): Environment {
  return { ...process.env, ...added }
}

/** What a program of an operator finds in its environment: nothing that configures this process. */
export function programEnvironment(): Environment {
  return { PATH: process.env['PATH'] }
}

/** The same for a program of ours that computes: with the ways to libraries and to devices. */
export function computeEnvironment(): Environment {
  const names = ['PATH', 'HOME', 'LD_LIBRARY_PATH', 'CUDA_VISIBLE_DEVICES', 'SystemRoot']
  return Object.fromEntries(names.map((name) => [name, process.env[name]]))
}

/** File and environment, checked; throws one `ConfigError` that names every bad key. */
export function loadConfig(environment: Environment, checks: readonly ConfigCheck[] = []): Config {
  const faults: string[] = []
  const values = readFile(environment, faults)
  const sources: Record<string, ConfigSource> = {}
  overlayEnvironment(configSchema, { values, environment, path: '', sources })
  overlayUpstream(values, environment)
  overlayEngine(values, environment)
  const config = Value.Default(configSchema, values)
  faults.push(...schemaFaults(config))
  // Keys of the right type are held against one another even where others are wrong.
  const checked = Value.Check(configSchema, config) ? config : Value.Cast(configSchema, config)
  const usable: Config = { ...checked, sources }
  readKeyVariables(usable, environment, faults)
  faults.push(...contradictions(usable), ...checks.flatMap((check) => [...check(usable)]))
  if (faults.length > 0) throw new ConfigError([...new Set(faults)])
  return deepFreeze(usable)
}

/** A copy that may be shown: every secret that is set reads "[redacted]". */
export function redactConfig({ sources: _, ...values }: Config): unknown {
  return redactBy(configSchema, values)
}

/** The configuration as the file would spell it. */
export function spellAsFile(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(spellAsFile)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [toSnake(key), spellAsFile(item)]),
  )
}

function readFile(environment: Environment, faults: string[]): JsonObject {
  const named = environment['SLUICE_CONFIG']
  const path = named ?? './sluice.toml'
  if (!existsSync(path)) {
    if (named !== undefined) faults.push(`SLUICE_CONFIG names a file that does not exist: ${path}`)
    return {}
  }
  try {
    const parsed: unknown = Bun.TOML.parse(readFileSync(path, 'utf8'))
    const spelled = fromFile(configSchema, parsed)
    return isRecord(spelled) ? spelled : {}
  } catch (error) {
    faults.push(`${path} is not readable TOML: ${error instanceof Error ? error.message : error}`)
    return {}
  }
}

/** snake_case keys of the file → camelCase, where the schema names them; maps keep their keys. */
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

/** Notes where each key that has one value got it from. */
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

/** A whole number where the key wants one; anything else stays text and fails the check. */
function fromText(schema: TSchema, text: string): unknown {
  return schema['type'] === 'integer' && /^-?\d+$/.test(text) ? Number(text) : text
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
  // The place of a program is its command line.
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
        ? `${name}: there is no such key`
        : `${name}${source}: ${faultOf(error.schema, error.message)} ${description ?? ''}`.trimEnd(),
    )
  }
  return faults
}

function faultOf(schema: TSchema, otherwise: string): string {
  const choices: unknown = schema['anyOf']
  if (!Array.isArray(choices)) return `${otherwise.toLowerCase()}.`
  return `expected one of ${choices.map((choice: TSchema) => choice['const']).join(', ')}.`
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

function isObjectSchema(schema: TSchema): schema is TObject {
  return schema['type'] === 'object' && isRecord(schema['properties'])
}

function toSnake(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function toCamel(key: string): string {
  return key.replace(/_([a-z])/g, (_found, letter: string) => letter.toUpperCase())
}
