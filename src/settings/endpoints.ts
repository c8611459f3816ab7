import { type Static, Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, jsonBody, type ResponseSettings } from '#api/endpoint.ts'
import { idExample, ifMatchHeader } from '#api/shapes.ts'
import { entityTag, readIfMatch } from '#lib/entity-tag.ts'
import { createEditing, type Edited } from './editing.ts'
import { shippedValues } from './layers.ts'
import { parsePatch } from './patch.ts'
import {
  configEdited,
  configHistory,
  configSchemaRecord,
  renderRevision,
  renderSchema,
  renderValues,
  revisionExample,
  schemaExample,
} from './record.ts'
import { configPatch, configValues } from './schema.ts'
import type { Settings } from './settings.ts'

export type SettingsEndpointsDeps = Parameters<typeof createEditing>[1] & { settings: Settings }

/** More than all keys with their longest values. */
const bodyBytesMax = 262_144
/** The largest integer of the database column. */
const revisionMax = 2_147_483_647

/** Reading and changing the configuration of the running system. */
export function settingsEndpoints({ settings, ...services }: SettingsEndpointsDeps): Endpoint[] {
  const editing = createEditing(settings, services)
  /** Refusals carry the current tag too. */
  const before = (set: ResponseSettings) => setTag(set, settings.state().tag)
  const optionsOf = (request: Request, { dry_run: isDryRun }: Static<typeof dryRunQuery>) => ({
    isExpected: readIfMatch(request.headers.get('if-match')),
    isDryRun,
  })
  const editResponse = (
    { before, after, warnings }: Edited,
    isDryRun: boolean,
    set: ResponseSettings,
  ) => {
    if (isDryRun) return { before: before.values, after: after.values, warnings }
    setTag(set, after.tag)
    return after.values
  }
  return [
    endpoint({
      method: 'GET',
      path: '/v1/config',
      permission: 'can_access_api',
      tag: 'Configuration',
      summary: 'Retrieve the configuration',
      description:
        'The effective values of all layers. Only callers with `can_edit_config` see `models.access` and `limits.model`, which name models that others may not know of.',
      responses: {
        200: {
          description: 'The values.',
          content: json(configValues, shippedValues()),
          headers: { etag },
        },
      },
      before,
      handle: ({ context }) => renderValues(context.principal, settings.current()),
    }),

    endpoint({
      method: 'PATCH',
      path: '/v1/config',
      permission: 'can_edit_config',
      tag: 'Configuration',
      summary: 'Update the configuration',
      description: `A merge patch: omitted keys are kept, and null resets a key, or switches
off a reranker that the configuration file names. The patch is applied completely or not
at all, and takes effect within a second in every process. Models and files must exist. The body may have 256 KiB.`,
      query: dryRunQuery,
      headers: ifMatchHeader,
      body: jsonBody(configPatch, {
        example: { retrieval_k: 5, files: { trash_seconds: null } },
        bytesMax: bodyBytesMax,
        read: parsePatch,
      }),
      responses: { 200: editDescription },
      errors: {
        unprocessable: ['"retrieval_k" must be at most 50.', ...invalidReferences],
        unknown_field: '"retrieval_n" is not a known field.',
        removed_field: {
          code: 'collection_name_removed',
          message:
            '"collection_name" was removed; name the documents in "service_desk.document_ids".',
        },
        ...editErrors,
      },
      before,
      async handle({ query, body, context, request, set }) {
        const options = optionsOf(request, query)
        return editResponse(await editing.patch(context, body, options), options.isDryRun, set)
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/config/schema',
      permission: 'can_access_api',
      tag: 'Configuration',
      summary: 'Retrieve the configuration schema',
      description: 'A JSON Schema with all bounds, and the layer that provides each value.',
      responses: {
        200: { description: 'The schema.', content: json(configSchemaRecord, schemaExample) },
      },
      handle: () => renderSchema(settings),
    }),

    endpoint({
      method: 'GET',
      path: '/v1/config/history',
      permission: 'can_edit_config',
      tag: 'Configuration',
      summary: 'List configuration changes',
      description: 'Newest first. The last 500 are kept.',
      query: historyQuery,
      responses: {
        200: {
          description: 'A page of changes.',
          content: json(configHistory, {
            object: 'list',
            data: [revisionExample],
            has_more: false,
            first_id: 12,
            last_id: 12,
          }),
        },
      },
      errors: { unprocessable: '"limit" must be a whole number from 1 to 100.' },
      async handle({ query: { limit, after } }) {
        const { items, hasMore } = await settings.history({ limit, before: after })
        return {
          object: 'list',
          data: items.map(renderRevision),
          has_more: hasMore,
          first_id: items[0]?.revision ?? null,
          last_id: items.at(-1)?.revision ?? null,
        } satisfies Static<typeof configHistory>
      },
    }),

    endpoint({
      method: 'POST',
      path: '/v1/config/rollback',
      permission: 'can_edit_config',
      tag: 'Configuration',
      summary: 'Roll back the configuration',
      description:
        'Restores the values after an earlier change, as a new change. The values are validated by the current rules.',
      query: dryRunQuery,
      headers: ifMatchHeader,
      body: jsonBody(rollbackBody, { example: { revision: 1 }, bytesMax: bodyBytesMax }),
      responses: { 200: editDescription },
      errors: {
        unprocessable: [
          '"revision" is required.',
          { code: 'revision_not_found', message: 'There is no revision 11; see the history.' },
          ...invalidReferences,
        ],
        ...editErrors,
      },
      before,
      async handle({ query, body: { revision }, context, request, set }) {
        const options = optionsOf(request, query)
        const edited = await editing.rollBack(context, revision, options)
        return editResponse(edited, options.isDryRun, set)
      },
    }),
  ]
}

function setTag(set: ResponseSettings, tag: string): void {
  set.headers['etag'] = entityTag(tag)
}

const dryRunQuery = Type.Object({
  dry_run: Type.Boolean({
    description: 'Validates the change and returns its effect without applying it.',
    default: false,
  }),
})
const historyQuery = Type.Object({
  limit: Type.Integer({ description: 'Changes per page.', minimum: 1, maximum: 100, default: 20 }),
  after: Type.Optional(
    Type.Integer({
      description: 'The last revision of the previous page.',
      minimum: 0,
      maximum: revisionMax,
    }),
  ),
})
const rollbackBody = Type.Object(
  {
    revision: Type.Integer({
      description: 'The change whose result is restored; 0: no settings.',
      minimum: 0,
      maximum: revisionMax,
    }),
  },
  { additionalProperties: false },
)

const etag = 'The tag of the current values.'
const editDescription = {
  description: 'The new values; for a dry run, the values before and after, and warnings.',
  content: json(configEdited, shippedValues()),
  headers: { etag },
}
const editErrors = {
  conflict: [
    {
      code: 'config_locked',
      message: '"retrieval_k" is locked by the environment (SLUICE_RETRIEVAL_K).',
    },
    {
      code: 'reranker_in_use',
      message: '"rerank_top_n" is 5 and needs the reranker; set it to null as well.',
    },
  ],
  precondition_failed: 'The configuration has changed; read it again before you change it.',
} as const
const invalidReferences = [
  { code: 'model_not_found', message: 'The model "sorter" does not exist.' },
  {
    code: 'model_mode_mismatch',
    message: 'The model "writer" is of mode generate; one of mode embed is needed.',
  },
  { code: 'document_not_found', message: `There is no file with the id "${idExample}".` },
  {
    code: 'reranker_not_configured',
    message: '"rerank_top_n" needs a reranker; set "reranker_model" as well.',
  },
]
