import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { UsageError } from './options.ts'

/** Configuration keys set on the command line: `speech.resume_chars_max=1024`. */
export const settingsOption = { type: 'string', multiple: true, default: [] as string[] } as const

/**
 * Validates the syntax of `--set` before anything is started. The gateway validates keys and
 * values when it starts.
 */
export function readSettings(values: readonly string[]): readonly string[] {
  const wrong = values.find((value) => !/^[a-z][a-z0-9_.]*=/.test(value))
  if (wrong === undefined) return values
  throw new UsageError(
    `--set is a key of the configuration with its value (limits.request_bytes_max=1000000), not ${wrong}`,
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
