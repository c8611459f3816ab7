import type { TObject } from '@sinclair/typebox'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { type FormerKey, isObjectSchema } from './keys.ts'
import type { Environment } from './load.ts'
import type { Config } from './schema.ts'

type FormerNames = Config['formerNames'][number][]

/**
 * Moves values of former names to the present ones, which take precedence, and returns the names found.
 * `toSnake` spells a key as in the file.
 */
export function adoptFormerNames(
  schema: TObject,
  context: {
    values: JsonObject
    environment: Environment
    toSnake: (key: string) => string
    path?: string
  },
): { environment: Environment; formerNames: FormerNames } {
  const { values, toSnake, path = '' } = context
  let { environment } = context
  const formerNames: FormerNames = []
  for (const [key, property] of Object.entries(schema.properties)) {
    if (isObjectSchema(property)) {
      const section = values[key]
      const inner = adoptFormerNames(property, {
        ...context,
        environment,
        values: isRecord(section) ? section : {},
        path: `${path}${toSnake(key)}.`,
      })
      environment = inner.environment
      formerNames.push(...inner.formerNames)
      continue
    }
    const former: FormerKey | undefined = property['former']
    if (former === undefined) continue
    const inFile = [former.key, toSnake(former.key)].find((name) => name in values)
    if (inFile !== undefined) {
      values[key] ??= values[inFile]
      delete values[inFile]
      formerNames.push({ name: path + toSnake(former.key), use: path + toSnake(key) })
    }
    const variable = String(property['env'])
    const text = environment[former.env]
    if (text === undefined || text === '') continue
    environment = { ...environment, [variable]: environment[variable] || text }
    formerNames.push({ name: former.env, use: variable })
  }
  return { environment, formerNames }
}
