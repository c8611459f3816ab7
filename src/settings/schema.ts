import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { type Config, configSchema } from '#config/schema.ts'
import type { JsonObject } from '#lib/json.ts'
import { type Checker, compileChecker } from '#lib/schema.ts'

/**
 * The wire shape of `/v1/config`. What the configuration has too is taken from there, with its
 * bounds. Only what acts at once, without a restart, may be listed here.
 */

const documentsMax = 500

const { files, responses, retrieval } = configSchema.properties

const strict = <T extends TProperties>(fields: T) =>
  Type.Object(fields, { additionalProperties: false })
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
/** What else gives a key its value is told elsewhere. */
const told = <T extends TSchema>({ env: _, ...schema }: T) => schema as unknown as T

const documentIds = Type.Array(Type.String({ maxLength: 100 }), {
  description: 'Ids of the files that the service desk answers from.',
  maxItems: documentsMax,
})

/** What holds, as it is on the wire. */
export const configValues = Type.Object(
  {
    retrieval_k: told(retrieval.properties.k),
    rerank_top_n: nullable(told(retrieval.properties.rerankTopN)),
    embedding_model: told(retrieval.properties.embeddingModel),
    reranker_model: nullable(told(retrieval.properties.rerankModel)),
    service_desk: strict({ document_ids: nullable(documentIds) }),
    files: strict({
      max_bytes: told(files.properties.bytesMax),
      trash_seconds: told(files.properties.trashS),
      people_picker: told(files.properties.peoplePicker),
    }),
    responses: strict({ ttl_seconds: told(responses.properties.ttlS) }),
  },
  { $id: 'Config', additionalProperties: false },
)
export type ConfigValues = Static<typeof configValues>

export type SettingsConfig = Pick<Config, 'retrieval' | 'files' | 'responses' | 'sources'>

/** One key that administrators set, by its path: `files.max_bytes`. */
export type Setting = {
  readonly key: string
  /** As the configuration file spells it; null where it is set by administrators alone. */
  readonly configKey: string | null
  readonly isNullable: boolean
  /** Of a value that is set, which is never null. */
  readonly schema: TSchema
  readonly checker: Checker<TSchema>
}

const configKeys: Readonly<Record<string, string>> = {
  retrieval_k: 'retrieval.k',
  rerank_top_n: 'retrieval.rerank_top_n',
  embedding_model: 'retrieval.embedding_model',
  reranker_model: 'retrieval.rerank_model',
  'files.max_bytes': 'files.bytes_max',
  'files.trash_seconds': 'files.trash_s',
  'files.people_picker': 'files.people_picker',
  'responses.ttl_seconds': 'responses.ttl_s',
}

/** The values of the layers below what administrators set. */
export function configuredValues({
  retrieval,
  files,
  responses,
}: Omit<SettingsConfig, 'sources'>): ConfigValues {
  return {
    retrieval_k: retrieval.k,
    rerank_top_n: retrieval.rerankTopN ?? null,
    embedding_model: retrieval.embeddingModel,
    reranker_model: retrieval.rerankModel ?? null,
    service_desk: { document_ids: null },
    files: {
      max_bytes: files.bytesMax,
      trash_seconds: files.trashS,
      people_picker: files.peoplePicker,
    },
    responses: { ttl_seconds: responses.ttlS },
  }
}

export const settingsByKey: ReadonlyMap<string, Setting> = new Map(
  leavesOf(configValues, '').map((setting) => [setting.key, setting]),
)

/** The keys of a section; empty where there is no such section. */
export function keysOfSection(section: string): readonly string[] {
  return [...settingsByKey.keys()].filter((key) => key.startsWith(`${section}.`))
}

export function isConfigValues(values: unknown): values is ConfigValues {
  return valuesChecker.check(values)
}

/** A JSON Schema of the values, in which `defaultOf` says what a key is unless anybody sets it. */
export function renderJsonSchema(defaultOf: (key: string) => unknown): JsonObject {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'System configuration',
    ...renderSection(configValues, '', defaultOf),
  }
}

const valuesChecker = compileChecker(configValues)

function leavesOf(schema: TObject, path: string): Setting[] {
  return Object.entries(schema.properties).flatMap(([name, property]) => {
    const key = path + name
    if (isSection(property)) return leavesOf(property, `${key}.`)
    const set: TSchema = property['anyOf']?.[0] ?? property
    return {
      key,
      configKey: configKeys[key] ?? null,
      isNullable: 'anyOf' in property,
      schema: set,
      checker: compileChecker(set),
    }
  })
}

function renderSection(
  schema: TObject,
  path: string,
  defaultOf: (key: string) => unknown,
): Record<string, unknown> {
  const properties = Object.entries(schema.properties).map(([name, property]) => {
    const key = path + name
    return isSection(property)
      ? [name, renderSection(property, `${key}.`, defaultOf)]
      : [name, renderLeaf(key, defaultOf(key))]
  })
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    additionalProperties: false,
  }
}

function renderLeaf(key: string, value: unknown): Record<string, unknown> {
  const setting = settingsByKey.get(key)
  const { default: _, description, ...rest }: Partial<TSchema> = setting?.schema ?? {}
  return {
    description,
    ...(setting?.isNullable ? { anyOf: [rest, { type: 'null' }] } : rest),
    default: value,
  }
}

export function isSection(schema: TSchema): schema is TObject {
  return schema['type'] === 'object'
}
