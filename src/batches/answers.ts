import { renderError, renderMessagesError } from '#http/error-envelope.ts'
import type { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { asRecord } from '#lib/json.ts'
import { type Batch, type BatchError, type LineUsage, messagesPath } from './batches.ts'
import type { LineAnswer } from './line-store.ts'

/** The lines of outputs, in the format of the API that created the batch. */

type Answered = { readonly customId: string; readonly requestId: string }
type Format = Pick<Batch, 'endpoint'>

export function completedAnswer(
  { endpoint }: Format,
  { customId, requestId }: Answered,
  body: object,
): LineAnswer {
  const usage = usageOf(body)
  const answer =
    endpoint === messagesPath
      ? { custom_id: customId, result: { type: 'succeeded', message: body } }
      : outputLine(customId, { status_code: 200, request_id: requestId, body }, null)
  return { answer: JSON.stringify(answer), outcome: 'completed', usage }
}

export function failedAnswer(
  { endpoint }: Format,
  { customId, requestId }: Answered,
  error: AppError,
): LineAnswer {
  const answer =
    endpoint === messagesPath
      ? erroredResult(customId, { ...renderMessagesError(error), request_id: requestId })
      : outputLine(
          customId,
          { status_code: error.status, request_id: requestId, body: renderError(error) },
          null,
        )
  return { answer: JSON.stringify(answer), outcome: 'failed', usage: noUsage }
}

/** Of a line that the end of its batch left without an answer. */
export function unansweredLine({ endpoint, ending, errors }: Batch, customId: string): string {
  const reason = unansweredReason(ending, errors)
  if (endpoint !== messagesPath) return JSON.stringify(outputLine(customId, null, reason))
  if (ending === 'cancelled' || ending === 'expired') {
    const type = ending === 'cancelled' ? 'canceled' : 'expired'
    return JSON.stringify({ custom_id: customId, result: { type } })
  }
  const error = {
    type: reason.code === 'permission_denied' ? 'permission_error' : 'authentication_error',
    message: reason.message,
    details: { error_code: reason.code },
  }
  return JSON.stringify(erroredResult(customId, { type: 'error', error, request_id: null }))
}

function unansweredReason(ending: Batch['ending'], errors: readonly BatchError[] | null) {
  if (ending === 'cancelled') {
    const message = 'The batch was cancelled before this request was answered.'
    return { code: 'batch_cancelled', message }
  }
  if (ending === 'expired') {
    const message = 'The batch expired before this request was answered.'
    return { code: 'batch_expired', message }
  }
  const { code = 'batch_failed', message = 'The batch failed before this request was answered.' } =
    errors?.[0] ?? {}
  return { code, message }
}

function outputLine(customId: string, response: object | null, error: object | null) {
  return { id: newId('batch_req_'), custom_id: customId, response, error }
}

function erroredResult(customId: string, error: object) {
  return { custom_id: customId, result: { type: 'errored', error } }
}

const noUsage: LineUsage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 }
const tokensMax = 1e12

/** Of a response, a message or a list of embeddings. */
function usageOf(body: object): LineUsage {
  const usage = asRecord(asRecord(body)['usage'])
  const input = asRecord(usage['input_tokens_details'])
  const output = asRecord(usage['output_tokens_details'])
  return {
    inputTokens: tokensOf(usage['input_tokens'] ?? usage['prompt_tokens']),
    cachedTokens: tokensOf(input['cached_tokens'] ?? usage['cache_read_input_tokens']),
    outputTokens: tokensOf(usage['output_tokens']),
    reasoningTokens: tokensOf(output['reasoning_tokens'] ?? output['thinking_tokens']),
  }
}

/** An upstream may report anything. */
function tokensOf(value: unknown): number {
  return typeof value === 'number' && value > 0 ? Math.min(tokensMax, Math.round(value)) : 0
}
