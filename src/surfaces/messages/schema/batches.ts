import { type Static, Type } from '@sinclair/typebox'
import { anyObject, arrayOf, expecting, object } from '#api/request-schema.ts'
import { instant, nullable } from '#api/shapes.ts'
import { type Batch, hasEnded, messagesPath } from '#batches/batches.ts'
import { messageObject } from './message-object.ts'

/** Batches of messages. */

export const batchRequest = object({
  custom_id: expecting(
    '1 to 64 letters, digits, underscores or dashes',
    Type.String({ description: 'Unique within the batch.', pattern: '^[a-zA-Z0-9_-]{1,64}$' }),
  ),
  params: anyObject('The body of a request for a message, not streamed.'),
})

export const newMessageBatch = object(
  { requests: arrayOf(batchRequest, 'The requests.') },
  { $id: 'NewMessageBatch' },
)

const statuses = ['in_progress', 'canceling', 'ended'] as const
const counted = (description: string) => Type.Integer({ description })

export const messageBatch = Type.Object(
  {
    id: Type.String(),
    type: Type.Literal('message_batch'),
    processing_status: Type.Union(statuses.map((status) => Type.Literal(status))),
    request_counts: Type.Object({
      processing: counted('Requests of a batch that has not ended.'),
      succeeded: counted('Those with a message; 0 before the end, like the next ones.'),
      errored: counted('Those with an error.'),
      canceled: counted('Those that a cancellation left without a result.'),
      expired: counted('Those that the end of their time left without a result.'),
    }),
    created_at: instant('Time of creation'),
    ended_at: nullable(Type.String({ format: 'date-time' }), 'When the batch ended.'),
    expires_at: instant('When it expires'),
    cancel_initiated_at: nullable(Type.String({ format: 'date-time' }), 'When it was cancelled.'),
    archived_at: nullable(Type.String({ format: 'date-time' }), 'Always null.'),
    results_url: nullable(Type.String(), 'Where its results are, once it has ended.'),
  },
  { $id: 'MessageBatch' },
)

export const deletedMessageBatch = Type.Object({
  id: Type.String(),
  type: Type.Literal('message_batch_deleted'),
})

const result = (type: string) => Type.Object({ type: Type.Literal(type) })

export const messageBatchResult = Type.Object(
  {
    custom_id: Type.String(),
    result: Type.Union([
      Type.Object({ type: Type.Literal('succeeded'), message: messageObject }),
      Type.Object({ type: Type.Literal('errored'), error: Type.Object({}) }),
      result('canceled'),
      result('expired'),
    ]),
  },
  { $id: 'MessageBatchResult', description: 'One line.' },
)

export function renderMessageBatch(batch: Batch, origin: string): Static<typeof messageBatch> {
  const { id, endedAt, cancellingAt, createdAt, expiresAt, total, completed, failed } = batch
  const left = total - completed - failed
  const isEnded = hasEnded(batch)
  const leftBy = (ending: Batch['ending']) => (isEnded && batch.ending === ending ? left : 0)
  const isCanceling = !isEnded && batch.ending === 'cancelled'
  return {
    id,
    type: 'message_batch',
    processing_status: isEnded ? 'ended' : isCanceling ? 'canceling' : 'in_progress',
    request_counts: {
      processing: isEnded ? 0 : total,
      succeeded: isEnded ? completed : 0,
      errored: isEnded ? failed + leftBy('failed') : 0,
      canceled: leftBy('cancelled'),
      expired: leftBy('expired'),
    },
    created_at: createdAt.toISOString(),
    ended_at: endedAt?.toISOString() ?? null,
    expires_at: expiresAt.toISOString(),
    cancel_initiated_at: cancellingAt?.toISOString() ?? null,
    archived_at: null,
    results_url:
      batch.resultsSha256 === null || !isEnded
        ? null
        : `${origin}${messagesPath}/batches/${id}/results`,
  }
}
