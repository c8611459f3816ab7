import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'

/** Invalid options; nothing has been started. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Includes errors of `parseArgs` for unknown options. */
export function isUsageError(error: unknown): error is Error {
  if (error instanceof UsageError) return true
  return error instanceof TypeError && 'code' in error && `${error.code}`.startsWith('ERR_PARSE')
}

export function numberIn(
  text: string,
  bounds: { readonly name: string; readonly from: number; readonly to: number },
): number {
  const value = Number(text)
  if (value >= bounds.from && value <= bounds.to) return value
  throw new UsageError(`--${bounds.name} is a number from ${bounds.from} to ${bounds.to}`)
}

export function oneOf<Word extends string>(
  text: string,
  choice: { readonly name: string; readonly words: readonly Word[] },
): Word {
  const found = choice.words.find((word) => word === text)
  if (found !== undefined) return found
  throw new UsageError(`--${choice.name} is one of ${choice.words.join(', ')}`)
}

/** Comma-separated choices, each at most once. */
export function someOf<Word extends string>(
  text: string,
  choice: { readonly name: string; readonly words: readonly Word[] },
): Word[] {
  return [...new Set(text.split(',').map((word) => oneOf(word, choice)))]
}

/** Configuration keys set on the command line: `speech.resume_chars_max=1024`. */
export const settingsOption = { type: 'string', multiple: true, default: [] as string[] } as const

/** Common options, for `parseArgs`. */
export const runFlags = {
  quick: { type: 'boolean', default: false },
  database: { type: 'string' },
  set: settingsOption,
  json: { type: 'string' },
} as const

export type RunOptions = {
  readonly quick: boolean
  /** PostgreSQL server for the gateways' databases; default: PGlite. */
  readonly databaseServer: string | undefined
  readonly settings: readonly string[]
  readonly jsonFile: string | undefined
}

/** Reads the values of `runFlags`. */
export function readRunOptions(values: {
  readonly quick: boolean
  readonly database?: string | undefined
  readonly set: readonly string[]
  readonly json?: string | undefined
}): RunOptions {
  const { quick, database, set, json } = values
  return { quick, databaseServer: database, settings: readSettings(set), jsonFile: json }
}

/**
 * Validates the syntax of settings before anything is started. The gateway validates keys and values
 * when it starts.
 */
export function readSettings(values: readonly string[], flag = 'set'): readonly string[] {
  const wrong = values.find((value) => !/^[a-z][a-z0-9_.]*=/.test(value))
  if (wrong === undefined) return values
  throw new UsageError(
    `--${flag} is a key of the configuration with its value (limits.request_bytes_max=1000000), not ${wrong}`,
  )
}

/**
 * A configuration file in which the settings override `toml`. List entries go by index
 * (`engine.0.session_ms_max`).
 */
export function withSettings(toml: string, settings: readonly string[] = []): string {
  const values = asRecord(Bun.TOML.parse(toml))
  for (const setting of settings) {
    const equals = setting.indexOf('=')
    set(values, setting.slice(0, equals).split('.'), readValue(setting.slice(equals + 1)))
  }
  return Object.entries(values)
    .map((entry) => `${toPair(entry)}\n`)
    .join('')
}

function set(values: JsonObject, [key = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    values[key] = value
    return
  }
  const held = values[key]
  const inner = Array.isArray(held) ? { ...held } : asRecord(held)
  set(inner, rest, value)
  values[key] = Array.isArray(held) ? Object.values(inner) : inner
}

/** A TOML number, boolean or list; anything else is a string. */
function readValue(text: string): unknown {
  try {
    return asRecord(Bun.TOML.parse(`value = ${text}`))['value']
  } catch {
    return text
  }
}

/** Inline TOML, which differs from JSON only in its tables. */
function toToml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toToml).join(', ')}]`
  if (!isRecord(value)) return JSON.stringify(value)
  return `{ ${Object.entries(value).map(toPair).join(', ')} }`
}

function toPair([key, value]: readonly [key: string, value: unknown]): string {
  const isBare = /^[\w-]+$/.test(key)
  return `${isBare ? key : JSON.stringify(key)} = ${toToml(value)}`
}
