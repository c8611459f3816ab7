import { sleep } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { parseJson } from '#lib/json.ts'
import { failureOf } from './attempt.ts'
import type { Target } from './generate.ts'
import { readText, requestHeaders, requireSuccess } from './http-generation.ts'
import { pauseBeforeRetryMs, type RetryPolicy } from './retry.ts'
import type { Transport } from './transport.ts'
import { hideUpstreamIn } from './upstream-error.ts'

export type AskDeps = {
  readonly transport: Transport
  readonly retry: RetryPolicy
  /** How long one try may take. */
  readonly answerMs: number
}

/** What is asked of one target, and what its answer means. */
export type Question<T> = {
  readonly path: string
  readonly body: unknown
  /** Throws an `AppError` for an answer that makes no sense. */
  read(answer: unknown): T
}

/** The longest answer: some two thousand long vectors. */
const answerBytesMax = 268_435_456

/**
 * POSTs a question that is answered in one piece, of the first target that answers it; repeated as
 * generations are. Throws an `AppError` of an upstream's kind.
 */
export async function askUpstream<T>(
  deps: AskDeps,
  { targets, signal }: { targets: readonly Target[]; signal: AbortSignal },
  question: (target: Target) => Question<T>,
): Promise<T> {
  for (let tries = 0; ; tries++) {
    const target = targets[tries % targets.length]
    if (target === undefined) throw new AppError('internal_error', 'The model has no upstream.')
    try {
      return await askOnce(deps, target, question(target), signal)
    } catch (error) {
      const failure = failureOf(hideUpstreamIn(error, target.upstream))
      const untriedUpstream = tries + 1 < targets.length
      const pauseMs = pauseBeforeRetryMs(failure, tries, { ...deps.retry, untriedUpstream })
      if (pauseMs === null || signal.aborted) throw failure
      await sleep(pauseMs, signal)
    }
  }
}

async function askOnce<T>(
  { transport, answerMs }: AskDeps,
  { upstream }: Target,
  question: Question<T>,
  signal: AbortSignal,
): Promise<T> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(tooLate(answerMs)), answerMs)
  try {
    const answer = await transport.send({
      url: upstream.baseUrl + question.path,
      method: 'POST',
      headers: requestHeaders(upstream, 'application/json'),
      body: JSON.stringify(question.body),
      signal: AbortSignal.any([signal, late.signal]),
    })
    await requireSuccess(answer, upstream)
    return question.read(parseJson(await readText(answer, answerBytesMax)))
  } finally {
    clearTimeout(timer)
  }
}

function tooLate(answerMs: number): AppError {
  return new AppError(
    'upstream_first_event_timeout',
    `The upstream gave no answer within ${answerMs / 1000} s.`,
  )
}
