import { dropBody, tookTooLong } from '#installer/sources/origin.ts'
import { isFinal } from '#installer/sources/source.ts'
import { followSignal, Watchdog } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import type { Claim } from './claims.ts'
import { type FetchJob, isVouchedFor } from './job.ts'
import { type Judgement, judgeAnswer } from './judge-answer.ts'
import type { FailedTry } from './patience.ts'
import { receive, TrickleError } from './receive.ts'
import type { Span } from './spans.ts'

export type Outcome =
  /** The claim is filled; one without an end reaches to the end of the file. */
  | { kind: 'filled' }
  | ({ kind: 'failed' } & FailedTry)
  /** The source sent more than the file has by its own word. */
  | { kind: 'excess' }
  | Extract<Judgement, { kind: 'changed' | 'unrangeable' }>

export type Exchange = {
  readonly claim: Claim
  /** Whether only this part of the file is asked for. */
  readonly isPart: boolean
  readonly signal: AbortSignal
  /** The answer is as it should be, and its body comes. */
  readonly onAnswered: () => void
}

/**
 * One question to the source, and its answer written to the disk. Throws what no other try would
 * change, and the signal's reason where it aborts.
 */
export async function exchange(job: FetchJob, how: Exchange): Promise<Outcome> {
  const { claim, signal } = how
  const { controller, release } = followSignal(signal)
  const { answerMs, stallMs } = job.settings
  const watchdog = new Watchdog(stallMs, () => controller.abort(stalled(stallMs)))
  const timer = setTimeout(() => controller.abort(tookTooLong()), answerMs)
  // Another connection may take over the end of the claim before the answer comes.
  const range: Span | null = how.isPart ? [claim.start, claim.end] : null
  try {
    const { response, url } = await job.origin.open(job.url, {
      headers: headersFor(job, range),
      signal: controller.signal,
    })
    clearTimeout(timer)
    const judgement = judge(job, range, response)
    if (judgement.kind !== 'body' || response.body === null) {
      dropBody(response)
      return settle(job, how, { judgement, isRedirected: url.href !== job.url.href })
    }
    const { end, isFramed, version } = judgement
    refuseTooLong(version.bytes, job)
    job.part.identify(job.ignoresValidators ? { ...version, validator: null } : version)
    claim.end = Math.min(claim.end, end ?? claim.end)
    how.onAnswered()
    const body = response.body
    const received = await receive(job, {
      body,
      claim,
      watchdog,
      isFramed: isFramed || isVouchedFor(job.file),
      bodyEnd: end,
    })
    return outcomeOf(received, { claim, bodyEnd: end })
  } catch (error) {
    signal.throwIfAborted()
    const failure = controller.signal.aborted ? controller.signal.reason : error
    return failed(failure instanceof TrickleError ? stalled(stallMs) : failure, {
      bytesGained: claim.at - claim.start,
      isSlow: failure instanceof TrickleError,
    })
  } finally {
    clearTimeout(timer)
    watchdog.stop()
    release()
    controller.abort()
  }
}

function headersFor({ part }: FetchJob, range: Span | null): Record<string, string> {
  if (range === null) return {}
  const [start, end] = range
  const { validator } = part.version()
  return {
    range: `bytes=${start}-${Number.isFinite(end) ? end - 1 : ''}`,
    ...(validator === null ? {} : { 'if-range': validator }),
  }
}

function judge(job: FetchJob, range: Span | null, response: Response): Judgement {
  const judgement = judgeAnswer(response, { range, known: job.part.version() })
  // Parts that nothing holds together might be of different files.
  const isLoose =
    range !== null && judgement.kind === 'body' && judgement.version.validator === null
  if (!isLoose || isVouchedFor(job.file)) return judgement
  const sentence = 'The source does not say of which version of the file a part is.'
  return { kind: 'unrangeable', error: new AppError('upstream_invalid_answer', sentence) }
}

type Judged = { judgement: Judgement; isRedirected: boolean }

function settle(
  { part }: FetchJob,
  { claim }: Exchange,
  { judgement, isRedirected }: Judged,
): Outcome {
  switch (judgement.kind) {
    case 'failed':
      // Whoever a redirect leads to may refuse today what it was told to give tomorrow.
      if (isFinal(judgement.error) && !isRedirected) throw judgement.error
      return { kind: 'failed', error: judgement.error, bytesGained: 0, isSlow: false }
    case 'changed':
    case 'unrangeable':
      return judgement
    case 'empty':
      return setEmpty(part, claim)
    case 'body':
      // It has no body at all.
      return (part.version().bytes ?? 0) === 0 ? setEmpty(part, claim) : endedEarly(claim)
  }
}

function setEmpty(part: FetchJob['part'], claim: Claim): Outcome {
  part.identify({ ...part.version(), bytes: 0 })
  claim.end = claim.start
  return { kind: 'filled' }
}

function endedEarly(claim: Claim): Outcome {
  const error = new AppError('upstream_truncated', 'The source ended too early.')
  return { kind: 'failed', error, bytesGained: claim.at - claim.start, isSlow: false }
}

function outcomeOf(
  received: 'filled' | 'ended' | 'excess',
  { claim, bodyEnd }: { claim: Claim; bodyEnd: number | null },
): Outcome {
  if (received === 'excess') return { kind: 'excess' }
  if (received === 'filled' || bodyEnd === null) return { kind: 'filled' }
  return endedEarly(claim)
}

/** What is not of the source is thrown: a full disk, a host that is refused, a mistake of ours. */
function failed(failure: unknown, tried: Omit<FailedTry, 'error'>): Outcome {
  if (failure instanceof AppError && failure.kind.startsWith('upstream_')) {
    return { kind: 'failed', error: failure, ...tried }
  }
  throw failure
}

function refuseTooLong(bytes: number | null, { settings }: FetchJob): void {
  if (bytes === null || bytes <= settings.fileBytesMax) return
  throw tooLong(settings.fileBytesMax)
}

export function tooLong(fileBytesMax: number): AppError {
  return new AppError(
    'unprocessable',
    `The file has more than ${fileBytesMax} bytes, which is the limit.`,
    { code: 'file_too_large' },
  )
}

function stalled(stallMs: number): AppError {
  return new AppError(
    'upstream_gap_timeout',
    `The source brought next to nothing for ${stallMs / 1000} s.`,
  )
}
