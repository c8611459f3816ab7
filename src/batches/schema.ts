import { type Static, Type } from '@sinclair/typebox'
import { createReaders } from '#api/read-object.ts'
import { integer, nonEmptyString, object, oneOf, optional } from '#api/request-schema.ts'
import { nullable, unixTime } from '#api/shapes.ts'
import { AppError } from '#lib/errors.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import { isUuid } from '#lib/uuid.ts'
import { type Batch, embeddingsPath, responsesPath } from './batches.ts'

/** Batches as OpenAI's packages know them. */

const completionWindow = '24h'
const endpoints = [responsesPath, embeddingsPath] as const
const metadataMax = { pairs: 16, keyChars: 64, valueChars: 512 }
const lifetimeS = { min: 3_600, max: 2_592_000 }

const metadata = Type.Record(
  Type.String({ maxLength: metadataMax.keyChars }),
  Type.String({ maxLength: metadataMax.valueChars }),
  {
    maxProperties: metadataMax.pairs,
    description:
      'Up to 16 strings stored with the object: keys of up to 64 characters, values of up to 512.',
  },
)

const expiry = object(
  {
    anchor: oneOf(['created_at'], 'The creation of the file.'),
    seconds: integer(lifetimeS.min, lifetimeS.max, 'How long after it.'),
  },
  { description: 'When the output files expire; by default they do not.' },
)

export const newBatch = object(
  {
    input_file_id: nonEmptyString(
      'A JSONL file that was uploaded with the purpose `batch`: one request per line.',
    ),
    endpoint: oneOf(endpoints, 'The endpoint of every request.'),
    completion_window: oneOf([completionWindow], 'The time after which the batch expires.'),
    metadata: optional(metadata),
    output_expires_after: optional(expiry),
  },
  { $id: 'NewBatch' },
)

const { readObject } = createReaders(invalid)

/** Throws `invalid_request` with the invalid field as `param`. */
export function readNewBatch(body: unknown) {
  const fields = readObject(newBatch, body, '')
  const { output_expires_after: given } = fields
  const { seconds = null } =
    given === undefined ? {} : readObject(expiry, given, 'output_expires_after')
  return {
    fileId: readFileId(fields.input_file_id),
    endpoint: fields.endpoint,
    metadata: fields.metadata === undefined ? null : readMetadata(fields.metadata),
    outputLifetimeS: seconds,
    headers: {},
  }
}

function readFileId(id: string): string {
  if (isUuid(id)) return id.toLowerCase()
  throw new AppError('not_found', `There is no file with the id "${id}".`, {
    param: 'input_file_id',
  })
}

function readMetadata(given: Readonly<Record<string, unknown>>): Record<string, string> {
  const pairs = Object.entries(given)
  const { pairs: pairsMax, keyChars, valueChars } = metadataMax
  if (pairs.length > pairsMax) throw invalid('metadata', `may have ${pairsMax} pairs`)
  const read: Record<string, string> = {}
  for (const [key, value] of pairs) {
    if (key.length > keyChars) {
      throw invalid('metadata', `may have keys of ${keyChars} characters`)
    }
    if (typeof value !== 'string' || value.length > valueChars) {
      throw invalid(`metadata.${key}`, `must be a string of at most ${valueChars} characters`)
    }
    read[key] = value
  }
  return read
}

/** `predicate` completes the sentence that begins with the field. */
function invalid(param: string, predicate: string): AppError {
  if (param === '') return new AppError('invalid_request', `The request body ${predicate}.`)
  return new AppError('invalid_request', `${param} ${predicate}.`, { param })
}

const batchError = Type.Object({
  code: Type.String(),
  message: Type.String(),
  param: nullable(Type.String(), 'The field of the line.'),
  line: nullable(Type.Integer(), 'The line of the input, from 1.'),
})

const time = (description: string) => nullable(unixTime(''), description)

export const batchObject = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('batch'),
    endpoint: Type.String(),
    model: nullable(Type.String(), 'The model of the first request.'),
    errors: nullable(
      Type.Object({ object: Type.Literal('list'), data: Type.Array(batchError) }),
      'Why the batch failed: at most 100 errors of its input, or why it was ended.',
    ),
    input_file_id: nullable(Type.String(), 'The input.'),
    completion_window: Type.String(),
    status: Type.Union(
      (
        [
          'validating',
          'failed',
          'in_progress',
          'finalizing',
          'completed',
          'expired',
          'cancelling',
          'cancelled',
        ] as const
      ).map((status) => Type.Literal(status)),
    ),
    output_file_id: nullable(Type.String(), 'The file with the responses of status 200.'),
    error_file_id: nullable(
      Type.String(),
      'The file with the other responses, and the requests without a response.',
    ),
    created_at: unixTime('Unix seconds.'),
    in_progress_at: time('When the first requests began.'),
    expires_at: time('When it expires.'),
    finalizing_at: time('When it began to write its files.'),
    completed_at: time('When it completed.'),
    failed_at: time('When it failed.'),
    expired_at: time('When it expired.'),
    cancelling_at: time('When it was cancelled.'),
    cancelled_at: time('When its files were written after that.'),
    request_counts: Type.Object({
      total: Type.Integer(),
      completed: Type.Integer(),
      failed: Type.Integer({ description: 'Requests with a response of another status than 200.' }),
    }),
    usage: Type.Object({
      input_tokens: Type.Integer(),
      input_tokens_details: Type.Object({ cached_tokens: Type.Integer() }),
      output_tokens: Type.Integer(),
      output_tokens_details: Type.Object({ reasoning_tokens: Type.Integer() }),
      total_tokens: Type.Integer(),
    }),
    metadata: nullable(Type.Record(Type.String(), Type.String()), 'As given.'),
  },
  { $id: 'Batch' },
)
export type BatchObject = Static<typeof batchObject>

export function renderBatch(batch: Batch): BatchObject {
  const { status, errors, endedAt, usage } = batch
  const secondsOf = (date: Date | null) => (date === null ? null : unixSeconds(date))
  const endedAs = (ending: Batch['status']) => (status === ending ? secondsOf(endedAt) : null)
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    model: batch.model,
    errors: errors === null ? null : { object: 'list', data: [...errors] },
    input_file_id: batch.inputFileId,
    completion_window: completionWindow,
    status,
    output_file_id: batch.outputFileId,
    error_file_id: batch.errorFileId,
    created_at: unixSeconds(batch.createdAt),
    in_progress_at: secondsOf(batch.inProgressAt),
    expires_at: secondsOf(batch.expiresAt),
    finalizing_at: secondsOf(batch.finalizingAt),
    completed_at: endedAs('completed'),
    failed_at: endedAs('failed'),
    expired_at: endedAs('expired'),
    cancelling_at: secondsOf(batch.cancellingAt),
    cancelled_at: endedAs('cancelled'),
    request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
    usage: {
      input_tokens: usage.inputTokens,
      input_tokens_details: { cached_tokens: usage.cachedTokens },
      output_tokens: usage.outputTokens,
      output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
      total_tokens: usage.inputTokens + usage.outputTokens,
    },
    metadata: batch.metadata,
  }
}
