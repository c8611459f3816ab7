import { idExample, ifMatchHeader, instantExample } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import { configEdited, configHistory, configPatch, configSchemaRecord } from './answer-schema.ts'
import { dryRunQuery, historyQuery, rollbackBody } from './read-query.ts'
import { type ConfigValues, configValues } from './schema.ts'

const tag = 'Configuration'
const etag = 'The tag of what holds.'

const held: ConfigValues = {
  retrieval_k: 5,
  rerank_top_n: null,
  embedding_model: 'local-hash',
  reranker_model: null,
  service_desk: { document_ids: [idExample] },
  files: { max_bytes: 5_368_709_120, trash_seconds: 2_592_000, people_picker: true },
  responses: { ttl_seconds: 2_592_000 },
}

/** Of a change, and of a way back to an earlier one. */
const editAnswer = {
  description: 'What holds now; of a dry run, both sides and `warnings`.',
  content: json(configEdited, held),
  headers: { etag },
}
const editErrors = {
  conflict: [
    {
      code: 'config_locked',
      message: '"retrieval_k" is given by the environment (SLUICE_RETRIEVAL_K).',
    },
    {
      code: 'reranker_in_use',
      message: '"rerank_top_n" is 5 and needs the reranker; set it to null as well.',
    },
  ],
  precondition_failed: 'The configuration has changed since; read it again before you change it.',
}
const nameFailures = [
  { code: 'model_not_found', message: 'The model "sorter" does not exist.' },
  {
    code: 'model_mode_mismatch',
    message: 'The model "writer" has mode generate; mode embed is required.',
  },
  { code: 'document_not_found', message: `There is no file with the id "${idExample}".` },
  {
    code: 'reranker_not_configured',
    message: '"rerank_top_n" needs a reranker; set "reranker_model" as well.',
  },
]

export const settingsOperations = {
  show: operation({
    tag,
    summary: 'Show the configuration',
    description: 'What holds now, whoever gave it.',
    answers: {
      200: { description: 'The values.', content: json(configValues, held), headers: { etag } },
    },
  }),
  change: operation({
    tag,
    summary: 'Change the configuration',
    description: [
      'A merge patch: what is left out stays, and null makes a key what it is as if nobody had set',
      'it. All of it is done or nothing, and it acts within a second in every process. Models and',
      'files must be there, and be what they must be. The body may have 256 KiB.',
    ].join(' '),
    query: dryRunQuery,
    headers: ifMatchHeader,
    body: { content: json(configPatch, { retrieval_k: 5, files: { trash_seconds: null } }) },
    answers: { 200: editAnswer },
    errors: {
      unprocessable: ['"retrieval_k" must be at most 50.', ...nameFailures],
      unknown_field: '"retrieval_n" is not a known field.',
      removed_field: {
        code: 'collection_name_removed',
        message:
          '"collection_name" was removed; name the documents in "service_desk.document_ids".',
      },
      ...editErrors,
    },
  }),
  schema: operation({
    tag,
    summary: 'Show what can be configured',
    description: 'A JSON Schema with all bounds and, of each key, which layer gives its value.',
    answers: {
      200: {
        description: 'The schema.',
        content: json(configSchemaRecord, {
          object: 'config.schema',
          schema: {
            $schema: 'https://json-schema.org/draft/2020-12/schema',
            title: 'System configuration',
            type: 'object',
            properties: {
              retrieval_k: {
                description: 'Passages that a model is given.',
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
              source: 'database',
              config_key: 'retrieval.k',
              locked_by: null,
              restart_required: false,
            },
          },
        }),
      },
    },
  }),
  history: operation({
    tag,
    summary: 'List the changes',
    description: 'Newest first. The last 500 are kept.',
    query: historyQuery,
    answers: {
      200: {
        description: 'A page of changes.',
        content: json(configHistory, {
          object: 'list',
          data: [
            {
              object: 'config.revision',
              revision: 12,
              created_at: instantExample,
              actor_id: idExample,
              patch: { retrieval_k: 5 },
              before: {},
              after: { retrieval_k: 5 },
            },
          ],
          has_more: false,
          first_id: 12,
          last_id: 12,
        }),
      },
    },
    errors: { unprocessable: '"limit" must be a whole number from 1 to 100.' },
  }),
  rollBack: operation({
    tag,
    summary: 'Go back to what an earlier change left',
    description:
      'A new change, which the history shows. What it sets is checked anew, by the rules of today.',
    query: dryRunQuery,
    headers: ifMatchHeader,
    body: { content: json(rollbackBody, { revision: 11 }) },
    answers: { 200: editAnswer },
    errors: {
      unprocessable: [
        '"revision" is required.',
        { code: 'revision_not_found', message: 'There is no revision 11; see the history.' },
        ...nameFailures,
      ],
      ...editErrors,
    },
  }),
}
