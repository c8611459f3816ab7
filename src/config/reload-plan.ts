import type { TObject, TSchema } from '@sinclair/typebox'
import { isRecord } from '#lib/json.ts'
import { isObjectSchema, isReloading } from './keys.ts'
import { type Config, type ConfigSource, configSchema } from './schema.ts'
import { redactBy } from './secrets.ts'
import { toFileKeys, toSnake } from './spelling.ts'

/** A changed key, in the spelling of the file and without secrets: `upstream.gpu-1.url`. */
export type KeyChange = {
  readonly key: string
  /** Null: absent. */
  readonly before: unknown
  readonly after: unknown
}

export type ReloadPlan = {
  /** What is in effect after the reload: keys that need a restart keep their values. */
  readonly config: Config
  readonly changed: readonly KeyChange[]
  /** Keys whose values in the file are not in effect. */
  readonly needsRestart: readonly string[]
}

type Leaf = {
  readonly path: string
  readonly schema: TSchema
  readonly reloads: boolean
  readonly before: unknown
  readonly after: unknown
}

/** How a running configuration changes to one that was loaded again. */
export function planReload(running: Config, loaded: Config): ReloadPlan {
  const leaves = [...leavesOf(configSchema, running, loaded)]
  const changed = leaves.filter(({ before, after }) => !Bun.deepEquals(before, after, true))
  const reloaded = leaves.filter(({ reloads }) => reloads)
  return {
    config: {
      ...running,
      ...merge(configSchema, running, loaded),
      sources: mergeSources(running, loaded, reloaded),
      formerNames: loaded.formerNames,
    },
    changed: changed.filter(({ reloads }) => reloads).flatMap((leaf) => [...changesOf(leaf)]),
    needsRestart: changed.filter(({ reloads }) => !reloads).map(({ path }) => path),
  }
}

export function* leavesOf(
  schema: TObject,
  before: unknown,
  after: unknown,
  path = '',
  reloads = false,
): Generator<Leaf> {
  for (const [key, property] of Object.entries(schema.properties)) {
    const leaf = {
      path: path + toSnake(key),
      schema: property,
      reloads: reloads || isReloading(property),
      before: fieldOf(before, key),
      after: fieldOf(after, key),
    }
    if (!isObjectSchema(property)) yield leaf
    else yield* leavesOf(property, leaf.before, leaf.after, `${leaf.path}.`, leaf.reloads)
  }
}

function merge(schema: TObject, running: unknown, loaded: unknown): object {
  const entries = Object.entries(schema.properties).map(([key, property]) => {
    const [before, after] = [fieldOf(running, key), fieldOf(loaded, key)]
    if (isReloading(property)) return [key, after]
    return [key, isObjectSchema(property) ? merge(property, before, after) : before]
  })
  return Object.freeze(Object.fromEntries(entries.filter(([, value]) => value !== undefined)))
}

function mergeSources(running: Config, loaded: Config, reloaded: readonly Leaf[]) {
  const paths = new Set(reloaded.map(({ path }) => path))
  const sourcesOf = ({ sources }: Config, isReloaded: boolean): [string, ConfigSource][] =>
    Object.entries(sources).filter(([path]) => paths.has(path) === isReloaded)
  return Object.fromEntries([...sourcesOf(running, false), ...sourcesOf(loaded, true)])
}

/** Entries of a list or a table are compared one by one, so that each change is seen. */
function* changesOf({ path, schema, before, after }: Omit<Leaf, 'reloads'>): Generator<KeyChange> {
  const [left, right] = [entriesOf(schema, before), entriesOf(schema, after)]
  if (left === null || right === null) {
    yield { key: path, before: shown(schema, before), after: shown(schema, after) }
    return
  }
  const names = [...new Set([...left.keys(), ...right.keys()])]
  const differing = names.filter((name) => !Bun.deepEquals(left.get(name), right.get(name), true))
  for (const name of differing) {
    const entry = { schema: entrySchema(schema, name), before: left.get(name) }
    yield* changesOf({ ...entry, after: right.get(name), path: `${path}.${name}` })
  }
  // Upstreams, models and engines are in order of preference.
  if (differing.length === 0)
    yield { key: path, before: [...left.keys()], after: [...right.keys()] }
}

/** The fields of an object, or the entries of a list by their names; null for any other value. */
function entriesOf(schema: TSchema, value: unknown): Map<string, unknown> | null {
  if (schema['secret'] === true) return null
  if (isRecord(value))
    return new Map(Object.entries(value).map(([key, item]) => [spell(schema, key), item]))
  if (!Array.isArray(value)) return null
  const named = value.map((item): [unknown, unknown] => {
    return [fieldOf(item, 'name') ?? fieldOf(item, 'label'), item]
  })
  const isNamed = named.every((entry): entry is [string, unknown] => typeof entry[0] === 'string')
  return isNamed ? new Map(named) : null
}

/** Fields have names of the schema, the entries of a table those of the operator. */
function spell(schema: TSchema, key: string): string {
  return isObjectSchema(schema) ? toSnake(key) : key
}

function entrySchema(schema: TSchema, name: string): TSchema {
  if (schema['type'] === 'array') return schema['items']
  if (isObjectSchema(schema)) {
    const [, property] =
      Object.entries(schema.properties).find(([key]) => toSnake(key) === name) ?? []
    return property ?? ({} as TSchema)
  }
  return Object.values(schema['patternProperties'] ?? {})[0] as TSchema
}

/** In the spelling of the file, without secrets and defaults of fields; null: absent. */
export function shown(schema: TSchema, value: unknown): unknown {
  if (value === undefined) return null
  return toFileKeys(schema, redactBy(schema, withoutDefaults(schema, value)))
}

/** A new upstream has two dozen fields with their defaults. */
function withoutDefaults(schema: TSchema, value: unknown): unknown {
  if (!isObjectSchema(schema) || !isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).filter(
      ([key, item]) => !Bun.deepEquals(item, schema.properties[key]?.['default'], true),
    ),
  )
}

function fieldOf(value: unknown, key: string): unknown {
  return isRecord(value) ? value[key] : undefined
}
