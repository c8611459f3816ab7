import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { type Config, configSchema } from '#config/schema.ts'
import type { JsonObject } from '#lib/json.ts'
import { type Checker, compileChecker } from '#lib/schema.ts'

/** Resources that the value of a setting names, and that must exist. */
export type ReferenceKind = 'generation model' | 'embedding model' | 'rerank model' | 'files'

type ConfigProperties = typeof configSchema.properties
type PropertiesOf<Section extends keyof ConfigProperties> =
  ConfigProperties[Section] extends TObject<infer Properties> ? Properties : never

const configPath = Symbol('config path')
const referenceKind = Symbol('reference kind')
type Annotated = TSchema & {
  readonly [configPath]?: { readonly section: string; readonly name: string }
  readonly [referenceKind]?: ReferenceKind
}

const documentIds = Type.Array(Type.String({ maxLength: 100 }), {
  description:
    'Ids of the files that the service desk answers from, a built-in agent for every caller. Needs the role manager on each file; a file is found while the administrator who set it keeps that role.',
  maxItems: 500,
})
const serviceDeskModel = Type.String({
  description: 'The model of the service desk; null: the first one that generates text.',
  minLength: 1,
  maxLength: 256,
})

/**
 * Every setting that administrators can change, in its wire shape. To add one, add a line here: the
 * layers, the lock by an environment variable, validation, the history and the API documentation
 * derive from it. Code reads it by `settings.current()`, at each use, so only configuration that needs
 * no restart can be a setting.
 */
export const configValues = strict(
  {
    retrieval_k: titled('Passages per question', fromConfig('retrieval', 'k')),
    rerank_top_n: nullable(
      titled('Passages after reranking', fromConfig('retrieval', 'rerankTopN')),
    ),
    embedding_model: titled(
      'Embedding model',
      references('embedding model', fromConfig('retrieval', 'embeddingModel')),
    ),
    reranker_model: nullable(
      titled('Reranker', references('rerank model', fromConfig('retrieval', 'rerankerModel'))),
    ),
    service_desk: strict({
      document_ids: nullable(titled('Documents', references('files', documentIds))),
      model: nullable(titled('Model', references('generation model', serviceDeskModel))),
    }),
    files: strict({
      max_bytes: titled('Largest file', fromConfig('files', 'bytesMax')),
      trash_seconds: titled('Time in the trash', fromConfig('files', 'trashS')),
      people_picker: titled('Search for people', fromConfig('files', 'peoplePicker')),
    }),
    models: strict({ access: titled('Access to models', fromConfig('models', 'access')) }),
    responses: strict({
      ttl_seconds: titled('Lifetime of responses', fromConfig('responses', 'ttlS')),
    }),
    limits: strict({
      default: titled('Limits of each user', fromConfig('limits', 'default')),
      group: titled('Limits by group', fromConfig('limits', 'group')),
      user: titled('Limits by user', fromConfig('limits', 'user')),
      model: titled('Limits by model', fromConfig('limits', 'model')),
    }),
    budgets: strict({
      default: titled('Budgets of each user', fromConfig('budgets', 'default')),
      user: titled('Budgets by user', fromConfig('budgets', 'user')),
      group: titled('Budgets by group', fromConfig('budgets', 'group')),
      key: titled('Budgets by API key', fromConfig('budgets', 'key')),
    }),
  },
  { $id: 'Config' },
)
export type ConfigValues = Static<typeof configValues>

/** For code that uses settings. Read the values at each use, since they change at run time. */
export type CurrentSettings = { readonly current: () => ConfigValues }

/** A setting with the type, bounds and default of a key of the configuration file. */
function fromConfig<
  Section extends keyof ConfigProperties & string,
  Name extends keyof PropertiesOf<Section> & string,
>(section: Section, name: Name): PropertiesOf<Section>[Name] & TSchema {
  const { properties } = configSchema.properties[section] as unknown as TObject
  const { env: _, former: __, ...schema } = properties[name] ?? Type.Never()
  return { ...schema, [configPath]: { section, name } } as never
}

/** A few words for forms. */
function titled<T extends TSchema>(title: string, schema: T): T {
  return { ...schema, title }
}

function references<T extends TSchema>(kind: ReferenceKind, schema: T): T {
  return { ...schema, [referenceKind]: kind }
}

function strict<T extends TProperties>(fields: T, options: { $id?: string } = {}) {
  return Type.Object(fields, { additionalProperties: false, ...options })
}

function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()])
}

/** One setting, by its path: `files.max_bytes`. */
export type Setting = {
  readonly key: string
  /** As the configuration file spells it; null: administrators only. */
  readonly configKey: string | null
  readonly isNullable: boolean
  readonly reference: ReferenceKind | null
  /** Whether the value is an object, which a patch changes field by field. */
  readonly isMerged: boolean
  /** Of a value that is set, which is never null. */
  readonly schema: TSchema
  readonly checker: Checker<TSchema>
  valueIn(config: Config): unknown
}

export const settingsByKey: ReadonlyMap<string, Setting> = new Map(
  leavesOf(configValues, '').map((setting) => [setting.key, setting]),
)

function leavesOf({ properties }: TObject, path: string): Setting[] {
  return Object.entries(properties).flatMap(([name, property]) => {
    const key = path + name
    if (isSection(property)) return leavesOf(property, `${key}.`)
    const schema: Annotated = property['anyOf']?.[0] ?? property
    const origin = schema[configPath]
    return {
      key,
      configKey: origin === undefined ? null : `${origin.section}.${snakeCase(origin.name)}`,
      isNullable: 'anyOf' in property,
      reference: schema[referenceKind] ?? null,
      isMerged: schema['type'] === 'object',
      schema,
      checker: compileChecker(schema),
      valueIn: (config: Config) =>
        (origin === undefined ? schema['default'] : Object(config)[origin.section][origin.name]) ??
        null,
    }
  })
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** The keys of a section; empty if there is no such section. */
export function keysOfSection(section: string): readonly string[] {
  return [...settingsByKey.keys()].filter((key) => key.startsWith(`${section}.`))
}

const valuesChecker = compileChecker(configValues)

export function isConfigValues(values: unknown): values is ConfigValues {
  return valuesChecker.check(values)
}

/** An object with an origin in the configuration is one setting: its fields are data. */
function isSection(schema: Annotated): schema is TObject {
  return schema['type'] === 'object' && schema[configPath] === undefined
}

/** The body of a change: every key may be absent or null. */
export const configPatch = patchOf(configValues, {
  $id: 'ConfigPatch',
  description: 'A merge patch (RFC 7396): null resets a key to its value without the change.',
})

function patchOf({ properties }: TObject, options: { $id?: string; description?: string } = {}) {
  const fields: TProperties = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, optionalOrNull(schema)]),
  )
  return Type.Object(fields, { additionalProperties: false, ...options })
}

function optionalOrNull(schema: TSchema): TSchema {
  if (isSection(schema)) return Type.Optional(Type.Union([patchOf(schema), Type.Null()]))
  // The default is that of the setting, not that of the field of a patch.
  const { default: _, ...value } = schema['anyOf']?.[0] ?? schema
  return Type.Optional(Type.Union([mergeable(value), Type.Null()]))
}

/** The merge patch of an object: every field or entry may be null, which removes it. */
function mergeable(schema: TSchema): TSchema {
  if (schema['type'] !== 'object') return schema
  const { properties, patternProperties, maxProperties: _, ...rest } = schema
  const fields = properties ?? patternProperties
  const patches = Object.entries<TSchema>(fields).map(([name, field]) => {
    const { default: _, ...value } = field
    const patch = Type.Union([mergeable(value as TSchema), Type.Null()])
    return [name, properties === undefined ? patch : Type.Optional(patch)]
  })
  return {
    ...rest,
    [properties === undefined ? 'patternProperties' : 'properties']: Object.fromEntries(patches),
  } as TSchema
}

/** A JSON Schema of the values with their effective defaults. */
export function renderJsonSchema(defaultOf: (key: string) => unknown): JsonObject {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'System configuration',
    ...renderSection(configValues, '', defaultOf),
  }
}

function renderSection(
  { properties }: TObject,
  path: string,
  defaultOf: (key: string) => unknown,
): JsonObject {
  const fields = Object.entries(properties).map(([name, property]) => {
    const key = path + name
    return [
      name,
      isSection(property)
        ? renderSection(property, `${key}.`, defaultOf)
        : renderLeaf(key, defaultOf(key)),
    ]
  })
  return { type: 'object', properties: Object.fromEntries(fields), additionalProperties: false }
}

function renderLeaf(key: string, value: unknown): JsonObject {
  const setting = settingsByKey.get(key)
  const { default: _, title, description, ...schema }: Partial<TSchema> = setting?.schema ?? {}
  const rest = withUnits(schema, key)
  const { 'x-unit': unit, ...bounds } = rest
  return {
    title,
    description,
    ...(setting?.isNullable
      ? { anyOf: [bounds, { type: 'null' }], ...(unit === undefined ? {} : { 'x-unit': unit }) }
      : rest),
    ...(setting?.reference ? { 'x-reference': setting.reference } : {}),
    default: value,
  }
}

/** Adds `x-unit` to numbers whose name says it, at any depth. */
function withUnits(schema: JsonObject, name: string): JsonObject {
  const inner = (part: unknown) =>
    Object.fromEntries(
      Object.entries(Object(part)).map(([field, one]) => [field, withUnits(Object(one), field)]),
    )
  const { type, properties, patternProperties, items } = schema
  const unit = type === 'integer' || type === 'number' ? /bytes|seconds/.exec(name)?.[0] : undefined
  return {
    ...schema,
    ...(unit === undefined ? {} : { 'x-unit': unit }),
    ...(properties === undefined ? {} : { properties: inner(properties) }),
    ...(patternProperties === undefined ? {} : { patternProperties: inner(patternProperties) }),
    ...(items === undefined ? {} : { items: withUnits(Object(items), '') }),
  }
}
