import { readFileSync, statSync } from 'node:fs'
import type { TSchema } from '@sinclair/typebox'
import { messageOf } from '#lib/error-message.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { isObjectSchema } from './keys.ts'
import type { Environment } from './load.ts'
import { configSchema } from './schema.ts'
import { toCamel } from './spelling.ts'

/** The configuration file as it was read once, so that every process of a gateway uses the same text. */
export type ConfigFile = {
  readonly path: string
  /** Null: there is none, which is allowed at the default path. */
  readonly text: string | null
  /** Why it cannot be read. */
  readonly fault: string | null
}

const defaultPath = './sluice.toml'
const fileBytesMax = 16_777_216
/** Lines of a file in which the line of a syntax error is searched. */
const searchedLinesMax = 5_000

/** The file of `SLUICE_CONFIG`, or `./sluice.toml`. Never throws. */
export function readConfigFile(environment: Environment): ConfigFile {
  const named = environment['SLUICE_CONFIG'] || undefined
  const path = named ?? defaultPath
  const unusable = (fault: string): ConfigFile => ({ path, text: null, fault })
  try {
    const status = statSync(path)
    // Reading a pipe would block this process.
    if (status.isFIFO()) return unusable(`${path} is a pipe; a regular file is required.`)
    if (status.size > fileBytesMax) return unusable(`${path} is larger than ${fileBytesMax} bytes.`)
    return { path, text: readFileSync(path, 'utf8'), fault: null }
  } catch (error) {
    if (!isMissing(error)) return unusable(`${path} cannot be read: ${messageOf(error)}`)
    if (named === undefined) return { path, text: null, fault: null }
    return unusable(`SLUICE_CONFIG: no such file: ${path}`)
  }
}

/** The values of a file by the names of the schema. Adds to `faults` why they cannot be had. */
export function parseConfigFile({ path, text, fault }: ConfigFile, faults: string[]): JsonObject {
  if (fault !== null) faults.push(fault)
  if (text === null) return {}
  try {
    const values = fromFile(configSchema, Bun.TOML.parse(text))
    return isRecord(values) ? values : {}
  } catch (error) {
    const line = faultyLine(text)
    const place = line === null ? path : `${path}:${line}`
    faults.push(`${place} is not valid TOML: ${messageOf(error).replace('TOML Parse error: ', '')}`)
    return {}
  }
}

/** The parser names no line: it is the one after the longest start of the file that is valid. */
function faultyLine(text: string): number | null {
  const lines = text.split('\n')
  if (lines.length > searchedLinesMax) return null
  for (let count = lines.length - 1; count > 0; count--) {
    if (isToml(lines.slice(0, count).join('\n'))) return count + 1
  }
  return 1
}

function isToml(text: string): boolean {
  try {
    Bun.TOML.parse(text)
    return true
  } catch {
    return false
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
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
