import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { instant, nullable } from '#api/shapes.ts'
import { configValues, isSection } from './schema.ts'

/** What `/v1/config` and the routes below it answer with. */

const anyFields = (description: string) =>
  Type.Record(Type.String(), Type.Unknown(), { description })

const warning = Type.Object(
  {
    code: Type.String(),
    param: Type.String({ description: 'The key.' }),
    message: Type.String(),
  },
  { $id: 'ConfigWarning', description: 'What is allowed, and perhaps not meant.' },
)

const dryRun = Type.Object(
  { before: configValues, after: configValues, warnings: Type.Array(warning) },
  { $id: 'ConfigDryRun', description: 'What a change would do.' },
)

/** What is answered to a change: what holds now or, where it was only tried, both sides of it. */
export const configEdited = Type.Union([configValues, dryRun])
export type ConfigEdited = Static<typeof configEdited>

const keyRecord = Type.Object({
  default: Type.Unknown({ description: 'The value where nobody has set one.' }),
  source: Type.Union(
    ['default', 'file', 'database', 'environment'].map((source) => Type.Literal(source)),
    { description: 'The layer that gives the value; `database` is what administrators set.' },
  ),
  config_key: nullable(Type.String(), 'The same key in the configuration file.'),
  locked_by: nullable(
    Type.String(),
    'The environment variable that gives the value, so that nobody else can.',
  ),
  restart_required: Type.Boolean(),
})

export const configSchemaRecord = Type.Object(
  {
    object: Type.Literal('config.schema'),
    schema: anyFields('A JSON Schema (draft 2020-12) of the values.'),
    keys: Type.Record(Type.String(), keyRecord, {
      description: 'By the path of the key: `files.max_bytes`.',
    }),
  },
  { $id: 'ConfigSchema' },
)
export type ConfigSchemaRecord = Static<typeof configSchemaRecord>

const configRevision = Type.Object(
  {
    object: Type.Literal('config.revision'),
    revision: Type.Integer({ description: 'Rises with each change; there may be gaps.' }),
    created_at: instant('When it was made'),
    actor_id: Type.String({ format: 'uuid', description: 'The user who made it.' }),
    patch: anyFields('The merge patch that leads from one side to the other.'),
    before: anyFields('What administrators had set, and nothing else.'),
    after: anyFields('What they had set then.'),
  },
  { $id: 'ConfigRevision', description: 'One change of the configuration.' },
)
export type ConfigRevision = Static<typeof configRevision>

const revisionOrNull = (description: string) => nullable(Type.Integer(), description)

export const configHistory = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(configRevision),
  has_more: Type.Boolean({ description: 'Whether another page follows.' }),
  first_id: revisionOrNull('The first revision of this page.'),
  last_id: revisionOrNull('Its last one: `after` of the next page.'),
})
export type ConfigHistory = Static<typeof configHistory>

/** The body of a change: every key of the values may be absent, or null. */
export const configPatch = patchOf(configValues, {
  $id: 'ConfigPatch',
  description: 'A merge patch (RFC 7396): null makes a key what it is as if nobody had set it.',
})

function patchOf({ properties }: TObject, options: { $id?: string; description?: string } = {}) {
  const fields: TProperties = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, optionalOrNull(schema)]),
  )
  return Type.Object(fields, { additionalProperties: false, ...options })
}

function optionalOrNull(schema: TSchema): TSchema {
  const given = isSection(schema) ? patchOf(schema) : withoutDefault(schema['anyOf']?.[0] ?? schema)
  return Type.Optional(Type.Union([given, Type.Null()]))
}

/** What a key is as long as nobody sets it is not what it becomes when a patch leaves it out. */
function withoutDefault({ default: _, ...schema }: TSchema): TSchema {
  return { ...schema } as TSchema
}
