import { Type } from '@sinclair/typebox'
import { withNulls } from '#api/described.ts'
import { idExample, instantExample, listExample, listOf } from '#api/shapes.ts'
import { eventStream, json, operation } from '#docs/operation.ts'
import { orderedPageQuery } from '#retrieval/collections/schema.ts'
import {
  type ReindexFailure,
  type ReindexRecord,
  reindexFailure,
  reindexPlan,
  reindexRecord,
} from './answer-schema.ts'
import type { ReindexAction } from './reindex.ts'
import { reindexBody, reindexesQuery } from './schema.ts'

const tag = 'Embeddings'
const path = { id: 'The id of the reindex.' }
const chunking = { max_tokens: 800, overlap_tokens: 100 }
const reindex: ReindexRecord = {
  id: idExample,
  object: 'embedding.reindex',
  status: 'running',
  source: { index_id: '1', model: 'local-hash', dims: 384, chunking },
  target: { index_id: '2', model: 'embed-large', dims: 1_024, chunking },
  collection_ids: ['0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a63'],
  completed: 410,
  failed: 0,
  skipped: 2,
  total: 980,
  added: 3,
  rate_per_s: 6.5,
  eta_seconds: 88,
  last_error: null,
  revertible_until: null,
  created_at: instantExample,
  started_at: instantExample,
  finished_at: null,
  started_by: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a62',
}
const failure: ReindexFailure = {
  file_id: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a61',
  filename: 'scan.pdf',
  code: 'upstream_unreachable',
  message: 'The upstream could not be reached.',
  attempts: 15,
}

const absent = `There is no reindex with the id "${idExample}".`
const badPage = '"limit" must be a whole number from 1 to 100.'
const running = {
  code: 'reindex_running',
  message: 'The collection "handbooks" is on the way to another index already.',
}
const shown = (description: string) => ({ description, content: json(reindexRecord, reindex) })

const refusals = [
  { code: 'model_not_found', message: 'The model "embed-large" does not exist.' },
  {
    code: 'model_mode_mismatch',
    message: 'The model "demo" is of mode generate; one of mode embed is needed.',
  },
  {
    code: 'too_many_dimensions',
    message: 'The vectors of "embed-large" have 20000 numbers; at most 16000 can be kept.',
  },
  { code: 'collection_not_found', message: 'There is no collection "handbook".' },
  {
    code: 'several_source_indexes',
    message:
      'These collections are in 2 indexes, each of which changes by a reindex of its own. Together go: handbooks; letters.',
  },
  {
    code: 'already_current',
    message: 'The collections are in an index of "embed-large" with this chunking already.',
  },
]

/** What is told while it is watched, as it stands on the wire. */
const progressExample = [
  'event: progress',
  `data: ${JSON.stringify(reindex)}`,
  '',
  'event: progress',
  `data: ${JSON.stringify({ ...reindex, status: 'completed', completed: 978, eta_seconds: null })}`,
  '',
  '',
].join('\n')

const streamError = Type.Object(
  { error: Type.Object({ message: Type.String(), code: Type.String(), param: Type.Null() }) },
  { $id: 'ReindexStreamError', description: 'The data of the event `error`.' },
)

export const reindexOperations = {
  start: operation({
    tag,
    summary: 'Bring collections into another embedding space',
    description: [
      'Files go one by one into a new index while the collections are searched and filled: each is searched in the target once it is there, and in the source until then. New files go to the target at once.',
      'The model is tried first. With `dry_run` nothing is begun, and the answer (200) says what it would take.',
    ].join('\n\n'),
    body: {
      content: json(withNulls(reindexBody), {
        embedding_model: 'embed-large',
        collections: ['handbooks'],
      }),
    },
    answers: {
      202: shown('It is begun.'),
      200: {
        description: 'What it would take: the answer to a dry run.',
        content: json(reindexPlan, {
          total: 980,
          est_tokens: 1_250_000,
          est_seconds: 610,
          dims: 1_024,
        }),
      },
    },
    errors: {
      unprocessable: refusals,
      unknown_field: '"model" is not a known field.',
      conflict: running,
      upstream_error: {
        code: 'embedding_probe_failed',
        message: '"embed-large" failed when it was tried: The upstream could not be reached.',
      },
    },
  }),
  list: operation({
    tag,
    summary: 'List the reindexes',
    query: reindexesQuery,
    answers: {
      200: {
        description: 'A page of reindexes.',
        content: json(listOf(reindexRecord), listExample(reindex)),
      },
    },
    errors: { unprocessable: badPage },
  }),
  find: operation({
    tag,
    summary: 'Show a reindex',
    path,
    headers: Type.Object({
      'if-none-match': Type.Optional(Type.String({ description: 'The tag of what is known.' })),
    }),
    answers: {
      200: { ...shown('The reindex.'), headers: { etag: 'A tag of this very answer.' } },
      304: { description: 'It is as the tag says.' },
    },
    errors: { not_found: absent },
  }),
  watch: operation({
    tag,
    summary: 'Watch a reindex until its end',
    description:
      'An event `progress` at once, each second and with each change of its course; the stream ends with the reindex. An event `error` says that it cannot be watched any longer. A process tells 16 watchers at most.',
    path,
    answers: {
      200: {
        description: 'Events.',
        content: eventStream(Type.Union([reindexRecord, streamError]), progressExample),
      },
    },
    errors: {
      not_found: absent,
      too_many_streams: 'Too many watch reindexes here; try again later.',
    },
  }),
  failures: operation({
    tag,
    summary: 'List the files of a reindex that failed',
    path,
    query: orderedPageQuery,
    answers: {
      200: {
        description: 'A page of files.',
        content: json(listOf(reindexFailure), {
          ...listExample({ ...failure, id: failure.file_id }),
          data: [failure],
        }),
      },
    },
    errors: { not_found: absent, unprocessable: badPage },
  }),
}

const wrongState = {
  code: 'reindex_state',
  message: 'A reindex that is completed does not take "pause".',
}

export const actionOperations: Readonly<Record<ReindexAction, ReturnType<typeof operation>>> = {
  cancel: action('Cancel a reindex', 'All files go back into the source; none is lost.'),
  pause: action('Pause a reindex', 'No further file is begun.'),
  resume: action('Resume a reindex', 'It goes on after a pause.'),
  retry: action('Retry the files of a reindex that failed', 'Each is tried anew.'),
  accept: action(
    'Accept a reindex with its failures',
    'It comes to its end although files have failed; they are found no more.',
  ),
  revert: action('Revert a reindex', 'All files go back into the source, while it is kept.', {
    conflict: [
      wrongState,
      running,
      {
        code: 'reindex_superseded',
        message: 'The collections have come to another index since.',
      },
    ],
    gone: { code: 'source_dropped', message: 'The index before this reindex is kept no longer.' },
  }),
}

function action(
  summary: string,
  description: string,
  errors: Parameters<typeof operation>[0]['errors'] = { conflict: wrongState },
) {
  return operation({
    tag,
    summary,
    description: `${description} Where there is nothing to change, nothing is, and that is no error.`,
    path,
    answers: { 202: shown('It is under way.'), 200: shown('It has come to its end.') },
    errors: { not_found: absent, ...errors },
  })
}
