import type { Auth } from '#auth/auth.ts'
import { requireAccess } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import { jitteredBackoffMs } from '#lib/backoff.ts'
import { sleep } from '#lib/deadline.ts'
import { type AppError, type ErrorKind, toAppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { asRecord } from '#lib/json.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { TraceContext } from '#lib/trace.ts'
import type { Storage } from '#storage/storage.ts'
import { completedAnswer, failedAnswer } from './answers.ts'
import { type Batch, type LineAnswers, messagesPath, type PendingLine } from './batches.ts'
import type { LineAnswer } from './line-store.ts'
import { parseLine } from './validate-line.ts'

export type AnswerLineDeps = {
  auth: Pick<Auth, 'currentPrincipal'>
  storage: Pick<Storage, 'read'>
  answers: LineAnswers
  retriesMax: number
}

/** The rights of the creator of the batch have ended: no further line can be answered. */
export class BatchRefusedError extends Error {
  override readonly name = 'BatchRefusedError'
  readonly reason: AppError
  constructor(reason: AppError) {
    super(reason.message)
    this.reason = reason
  }
}

const access = { permission: basePermission, scope: 'inference' } as const
const refusals: ReadonlySet<ErrorKind> = new Set([
  'invalid_api_key',
  'invalid_token',
  'permission_denied',
])
/** A limit or a busy upstream: the line waits, however long, since its batch has until it expires. */
const waits: ReadonlySet<ErrorKind> = new Set([
  'rate_limit_exceeded',
  'queue_full',
  'queue_timeout',
  'too_many_streams',
  'no_descriptor_left',
  'service_unavailable',
  'content_check_failed',
  'upstream_overloaded',
])
/** This worker ends: another one answers the line. */
const lostHere: ReadonlySet<ErrorKind> = new Set(['draining', 'worker_lost', 'client_closed'])
/** Failures of an upstream that may pass. */
const repeats: ReadonlySet<ErrorKind> = new Set([
  'upstream_error',
  'upstream_unreachable',
  'upstream_truncated',
  'upstream_connect_timeout',
  'upstream_first_event_timeout',
  'upstream_gap_timeout',
  'upstream_total_timeout',
])
const backoff = { firstMs: 1_000, maxMs: 60_000 }
const retryAfterMaxMs = 60_000

/**
 * Answers one line with the rights of this moment. Throws `BatchRefusedError` if there are none, and the
 * error of a call that this worker could not complete: then the line has no answer.
 */
export async function answerLine(
  deps: AnswerLineDeps,
  batch: Batch,
  line: PendingLine,
  given: { signal: AbortSignal; trace: TraceContext | null },
): Promise<LineAnswer> {
  const answer = deps.answers.get(batch.endpoint)
  if (answer === undefined) throw new Error(`nothing answers lines of ${batch.endpoint}`)
  const { signal, trace } = given
  const headers = new Headers(batch.headers)
  const { keyId } = batch
  for (let waited = 0, repeated = 0; ; ) {
    const requestId = newId('req_')
    const answered = { customId: line.customId, requestId }
    let failure: AppError
    try {
      const principal = await principalOf(deps, batch)
      const body = await readBody(deps.storage, batch, line)
      const receivedAtMs = performance.now()
      const priority = 'batch' as const
      const context = { requestId, principal, keyId, trace, priority, receivedAtMs, signal }
      return completedAnswer(batch, answered, await answer(body, { context, headers }))
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (error instanceof BatchRefusedError) throw error
      failure = toAppError(error)
    }
    if (lostHere.has(failure.kind)) throw failure
    if (waits.has(failure.kind)) waited++
    else if (repeats.has(failure.kind) && repeated < deps.retriesMax) repeated++
    else return failedAnswer(batch, answered, failure)
    await sleep(pauseMs(failure, waited + repeated), signal)
  }
}

function pauseMs({ retryAfterS }: AppError, failures: number): number {
  const backoffMs = jitteredBackoffMs(failures, backoff)
  if (retryAfterS === undefined) return backoffMs
  return Math.max(backoffMs, Math.min(retryAfterMaxMs, retryAfterS * 1_000))
}

async function principalOf(
  { auth }: Pick<AnswerLineDeps, 'auth'>,
  { ownerId: userId, keyId, groups }: Batch,
): Promise<RequestPrincipal> {
  try {
    const principal = await auth.currentPrincipal({ userId, keyId })
    if (principal === undefined) return { userId, groups }
    requireAccess(principal, access)
    return principal
  } catch (error) {
    const reason = toAppError(error)
    throw refusals.has(reason.kind) ? new BatchRefusedError(reason) : reason
  }
}

async function readBody(
  storage: Pick<Storage, 'read'>,
  { endpoint, inputSha256 }: Batch,
  { startByte, bytes }: PendingLine,
) {
  const range = { start: startByte, end: startByte + bytes }
  const content = await new Response(await storage.read(inputSha256, range)).bytes()
  const { body, params } = asRecord(parseLine(content))
  return asRecord(endpoint === messagesPath ? params : body)
}
