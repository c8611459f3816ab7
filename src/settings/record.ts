import { type Static, Type } from '@sinclair/typebox'
import { idExample, instant, instantExample, nullable } from '#api/shapes.ts'
import type { Principal } from '#auth/principal.ts'
import { nest } from './patch.ts'
import { type ConfigValues, configValues, renderJsonSchema, settingsByKey } from './schema.ts'
import type { Settings } from './settings.ts'
import type { ListedRevision } from './store.ts'

const anyFields = (description: string) =>
  Type.Record(Type.String(), Type.Unknown(), { description })

const warning = Type.Object(
  {
    code: Type.String(),
    param: Type.String({ description: 'The key.' }),
    message: Type.String(),
  },
  { $id: 'ConfigWarning', description: 'A valid change that may not be intended.' },
)
export const configEdited = Type.Union([
  configValues,
  Type.Object(
    { before: configValues, after: configValues, warnings: Type.Array(warning) },
    { $id: 'ConfigDryRun', description: 'The effect of a change.' },
  ),
])

const keyRecord = Type.Object({
  default: Type.Unknown({ description: 'The built-in value.' }),
  configured: Type.Unknown({
    description: 'The value without changes at run time: what a reset returns to.',
  }),
  source: Type.Union(
    ['default', 'file', 'database', 'environment'].map((source) => Type.Literal(source)),
    { description: 'The layer that provides the value; `database`: set by an administrator.' },
  ),
  config_key: nullable(Type.String(), 'The key in the configuration file.'),
  locked_by: nullable(Type.String(), 'The environment variable that locks the value.'),
  restart_required: Type.Boolean(),
})
export const configSchemaRecord = Type.Object(
  {
    object: Type.Literal('config.schema'),
    schema: anyFields(
      'A JSON Schema (draft 2020-12) of the values. `x-unit`: `bytes` or `seconds`; `x-reference`: what a text names.',
    ),
    keys: Type.Record(Type.String(), keyRecord, {
      description: 'By the path of the key: `files.max_bytes`.',
    }),
  },
  { $id: 'ConfigSchema' },
)

const configRevision = Type.Object(
  {
    object: Type.Literal('config.revision'),
    revision: Type.Integer({ description: 'Increases with each change, possibly with gaps.' }),
    created_at: instant('Time of the change'),
    actor_id: Type.String({ format: 'uuid', description: 'The user who made it.' }),
    actor_name: nullable(Type.String(), 'The name of the user; null: deleted.'),
    patch: anyFields('The merge patch from `before` to `after`.'),
    before: anyFields('The values set by administrators before the change.'),
    after: anyFields('The values set by administrators after the change.'),
  },
  { $id: 'ConfigRevision', description: 'One change of the configuration.' },
)
export const configHistory = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(configRevision),
  has_more: Type.Boolean({ description: 'Whether another page follows.' }),
  first_id: nullable(Type.Integer(), 'The first revision of this page.'),
  last_id: nullable(Type.Integer(), 'The last revision: `after` of the next page.'),
})

export const schemaExample = {
  object: 'config.schema',
  schema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'System configuration',
    type: 'object',
    properties: {
      retrieval_k: {
        title: 'Passages per question',
        description: 'Passages that a model gets.',
        type: 'integer',
        minimum: 1,
        maximum: 50,
        default: 3,
      },
    },
    additionalProperties: false,
  },
  keys: {
    retrieval_k: {
      default: 3,
      configured: 4,
      source: 'database',
      config_key: 'retrieval.k',
      locked_by: null,
      restart_required: false,
    },
  },
}
export const revisionExample = {
  object: 'config.revision',
  revision: 12,
  created_at: instantExample,
  actor_id: idExample,
  actor_name: 'Ada',
  patch: { retrieval_k: 5 },
  before: {},
  after: { retrieval_k: 5 },
}

/** Rules of access and limits of models name models that other callers may not know of. */
export function renderValues({ permissions }: Principal, values: ConfigValues): ConfigValues {
  if (permissions.has('can_edit_config')) return values
  return { ...values, models: { access: [] }, limits: { ...values.limits, model: {} } }
}

export function renderSchema({ layers, state }: Settings): Static<typeof configSchemaRecord> {
  const { overrides } = state()
  const keys = [...settingsByKey.values()].map(({ key, configKey }) => [
    key,
    {
      default: layers.defaultOf(key),
      configured: layers.configuredOf(key),
      source: layers.sourceOf(key, overrides),
      config_key: configKey,
      locked_by: layers.lockOf(key),
      restart_required: false,
    },
  ])
  return {
    object: 'config.schema',
    schema: renderJsonSchema(layers.defaultOf),
    keys: Object.fromEntries(keys),
  }
}

export function renderRevision(change: ListedRevision): Static<typeof configRevision> {
  return {
    object: 'config.revision',
    revision: change.revision,
    created_at: change.createdAt.toISOString(),
    actor_id: change.actorId,
    actor_name: change.actorName,
    patch: nest(change.patch),
    before: nest(change.before),
    after: nest(change.after),
  }
}
