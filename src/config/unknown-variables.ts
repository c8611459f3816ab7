import type { TObject } from '@sinclair/typebox'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { suggestionFor } from '#lib/suggestion.ts'
import { isObjectSchema } from './keys.ts'
import type { Environment } from './load.ts'
import { configSchema } from './schema.ts'

/** Read in load.ts, and not declared at a key. */
const otherVariables = [
  'SLUICE_CONFIG',
  'SLUICE_UPSTREAM_URL',
  'SLUICE_UPSTREAM_API',
  'SLUICE_UPSTREAM_KEY',
  'SLUICE_STT_URL',
  'SLUICE_STT_ENGINE',
]

/**
 * A misspelt variable would silently have no effect. Kubernetes sets variables for a service named
 * `sluice`, and tests have their own.
 */
export function* unknownVariables(environment: Environment, values: JsonObject): Generator<string> {
  const known = [...variablesOf(configSchema), ...otherVariables]
  const named = new Set([...known, ...textsOf(values, 'keyEnv')])
  for (const [name, value = ''] of Object.entries(environment)) {
    if (!name.startsWith('SLUICE_') || name.startsWith('SLUICE_TEST_') || named.has(name)) continue
    if (/_SERVICE_(HOST|PORT)|_PORT_\d+_(TCP|UDP)/.test(name) || /^(tcp|udp):/.test(value)) continue
    const short = name.slice('SLUICE_'.length)
    const meant = known.includes(short) ? `; did you mean ${short}?` : suggestionFor(name, known)
    yield `${name}: unknown variable${meant || '.'}`
  }
}

function variablesOf(schema: TObject): string[] {
  return Object.values(schema.properties).flatMap((property) =>
    isObjectSchema(property)
      ? variablesOf(property)
      : [property['env'], property['former']?.env].filter(isText),
  )
}

/** The texts of a key, wherever it is. */
function textsOf(value: unknown, key: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => textsOf(item, key))
  if (!isRecord(value)) return []
  const own = value[key]
  return [...(isText(own) ? [own] : []), ...textsOf(Object.values(value), key)]
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}
