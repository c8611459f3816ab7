import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Static, TSchema } from '@sinclair/typebox'
import { Value, ValueErrorType } from '@sinclair/typebox/value'
import { appGatewayFaults } from '#app-gateway/config.ts'
import { authFaults } from '#auth/config.ts'
import { edgeFaults } from '#edges/config.ts'
import { hookFaults } from '#hooks/config.ts'
import { hostedToolFaults } from '#hosted-tools/config.ts'
import { niceVariable } from '#lib/compute-process.ts'
import { deepFreeze } from '#lib/frozen.ts'
import { isRecord } from '#lib/json.ts'
import { suggestionFor } from '#lib/suggestion.ts'
import { modelsFaults } from '#models/config.ts'
import { sealingFaults } from '#sealing/config.ts'
import { loginFaults } from '#sessions/config.ts'
import { speechFaults } from '#speech/config.ts'
import { tracingFaults } from '#telemetry/tracing/config.ts'
import { tlsFaults } from '#tls/config.ts'
import { translationsFaults } from '#translations/config.ts'
import { type ConfigFile, parseConfigFile, readConfigFile } from './config-file.ts'
import { adoptFormerNames } from './former-names.ts'
import { isObjectSchema } from './keys.ts'
import { overlayEngine, overlayEnvironment, overlayUpstream } from './overlay.ts'
import { type Config, type ConfigSource, configSchema } from './schema.ts'
import { toSnake } from './spelling.ts'
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
  edgeFaults,
  sealingFaults,
  modelsFaults,
  hostedToolFaults,
  hookFaults,
  appGatewayFaults,
  speechFaults,
  translationsFaults,
  tracingFaults,
]

/** The configuration of this process. Only this file reads the environment. */
export function loadConfigFromProcess(
  checks: readonly ConfigCheck[],
  file: ConfigFile = configFileOfProcess(),
): Config {
  return loadConfig(process.env, checks, file)
}

/** The file of this process, or another one. */
export function configFileOfProcess(path?: string): ConfigFile {
  return readConfigFile(path === undefined ? process.env : { SLUICE_CONFIG: path })
}

/** The environment of this process with additions, for a child process. */
export function childEnvironment(added: Record<string, string>): Environment {
  return { ...process.env, ...added }
}

/** Where programs of this user keep their settings. */
export function userConfigFolder(): string {
  return process.env['XDG_CONFIG_HOME'] || join(homedir(), '.config')
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
export function computeEnvironment({ computeNice }: Pick<Config, 'computeNice'>): Environment {
  const names = ['PATH', 'HOME', 'LD_LIBRARY_PATH', 'CUDA_VISIBLE_DEVICES', 'SystemRoot']
  const inherited = Object.fromEntries(names.map((name) => [name, process.env[name]]))
  return { ...inherited, [niceVariable]: String(computeNice) }
}

/** Loads and validates file and environment; throws one `ConfigError` with every fault. */
export function loadConfig(
  given: Environment,
  checks: readonly ConfigCheck[] = [],
  file: ConfigFile = readConfigFile(given),
): Config {
  const faults: string[] = []
  const values = parseConfigFile(file, faults)
  faults.push(...unknownVariables(given, values))
  const adopting = { values, environment: given, toSnake }
  const { environment, formerNames } = adoptFormerNames(configSchema, adopting)
  const sources: Record<string, ConfigSource> = {}
  overlayEnvironment(configSchema, { values, environment, path: '', sources })
  overlayUpstream(values, environment)
  overlayEngine(values, environment)
  faults.push(...kindFaults(configSchema, values, ''))
  const config = Value.Default(configSchema, values)
  faults.push(...schemaFaults(config))
  // Rules between valid keys are checked even if other keys are invalid.
  const checked = Value.Check(configSchema, config) ? config : nearestConfig(config)
  const usable: Config = { ...checked, sources, formerNames }
  readKeyVariables(usable, environment, faults)
  faults.push(...ruleFaults(usable, checks))
  if (faults.length > 0) throw new ConfigError([...new Set(faults)])
  return deepFreeze(usable)
}

/** The valid parts of a configuration, with the defaults of all others. */
function nearestConfig(config: unknown): Static<typeof configSchema> {
  // A section that is no object becomes an empty one.
  const completed = Value.Default(configSchema, Value.Cast(configSchema, config))
  return Value.Cast(configSchema, completed)
}

/** What is wrong with keys that are valid each by itself. */
export function ruleFaults(config: Config, checks: readonly ConfigCheck[]): string[] {
  return [...keyChecks, ...checks].flatMap((check) => [...check(config)])
}

/** A list where a table belongs, and the reverse: filling in defaults turns one into the other. */
function kindFaults(schema: TSchema, value: unknown, path: string): string[] {
  const isList = Array.isArray(value)
  if (schema['type'] === 'object' && isList) return [`${path}: expected object.`]
  if (schema['type'] === 'array' && isRecord(value)) return [`${path}: expected array.`]
  if (!isObjectSchema(schema) || !isRecord(value)) return []
  return Object.entries(schema.properties).flatMap(([key, property]) =>
    kindFaults(property, value[key], path === '' ? toSnake(key) : `${path}.${toSnake(key)}`),
  )
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
