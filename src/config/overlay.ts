import type { TObject, TSchema } from '@sinclair/typebox'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { isObjectSchema } from './keys.ts'
import type { Environment } from './load.ts'
import type { ConfigSource } from './schema.ts'
import { toSnake } from './spelling.ts'

/** Applies environment variables and records the source of each key. */
export function overlayEnvironment(
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

/** Converts numbers and booleans; any other text fails validation. */
function fromText(schema: TSchema, text: string): unknown {
  const isNumber =
    (schema['type'] === 'integer' && /^-?\d+$/.test(text)) ||
    (schema['type'] === 'number' && /^-?\d+(\.\d+)?$/.test(text))
  if (isNumber) return Number(text)
  const isFlag = schema['type'] === 'boolean' && /^(true|false)$/i.test(text)
  return isFlag ? text.toLowerCase() === 'true' : text
}

/** SLUICE_UPSTREAM_URL and its companions: one upstream without a file. */
export function overlayUpstream(values: JsonObject, environment: Environment): void {
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
export function overlayEngine(values: JsonObject, environment: Environment): void {
  const place = environment['SLUICE_STT_URL']
  const kind = environment['SLUICE_STT_ENGINE']
  if (!place && !kind) return
  const listed = Array.isArray(values['engine']) ? values['engine'] : []
  // For a program the URL is its command line.
  const where = kind === 'exec' ? { command: place?.split(/ +/) ?? [] } : { url: place }
  values['engine'] = [...listed, { name: 'default', kind: kind || 'openai-realtime', ...where }]
}
