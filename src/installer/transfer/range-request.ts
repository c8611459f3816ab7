import { cancelBody } from '#installer/sources/origin.ts'
import { hasKnownHash, isPermanent } from '#installer/sources/source.ts'
import { followSignal, Watchdog } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { classifyResponse, type RangeRequest, type ResponseClass } from './classify-response.ts'
import type { Claim, Span } from './ranges.ts'
import { receiveBody, SlowBodyError } from './receive-body.ts'
import type { FailedAttempt } from './retry-budget.ts'
import type { FileDownload } from './transfer.ts'

export type RangeOutcome =
  /** The claim is complete; one without an end reaches to the end of the file. */
  | { kind: 'completed' }
  | ({ kind: 'failed' } & FailedAttempt)
  /** The source sent more bytes than it declared. */
  | { kind: 'excess' }
  | Extract<ResponseClass, { kind: 'changed' | 'unrangeable' }>

type RangeOptions = {
  readonly claim: Claim
  /** Whether a range is requested, not the whole file. */
  readonly isPart: boolean
  readonly signal: AbortSignal
  /** The response is valid and its body follows. */
  readonly onResponse: () => void
}

/**
 * Requests a range and writes the response to the disk. Throws errors that a retry cannot fix, and
 * the reason of the signal when it aborts.
 */
export async function requestRange(
  download: FileDownload,
  { claim, isPart, signal, onResponse }: RangeOptions,
): Promise<RangeOutcome> {
  const { controller, release } = followSignal(signal)
  const { answerMs, stallMs } = download.settings
  const watchdog = new Watchdog(stallMs, () => controller.abort(stalled(stallMs)))
  const timer = setTimeout(
    () => controller.abort(download.origin.responseTimeout(download.url)),
    answerMs,
  )
  // Another connection may take over the end of the claim before the response arrives.
  const range: Span | null = isPart ? [claim.start, claim.end] : null
  try {
    const { response, url } = await download.origin.open(download.url, {
      headers: rangeHeaders(download, range),
      signal: controller.signal,
    })
    clearTimeout(timer)
    const classified = classify(download, { range, place: download.origin.place(url) }, response)
    if (classified.kind !== 'body' || response.body === null) {
      cancelBody(response)
      return outcomeWithoutBody(download, claim, classified, url.href !== download.url.href)
    }
    const { end, isFramed, version } = classified
    const { fileBytesMax } = download.settings
    if (version.bytes !== null && version.bytes > fileBytesMax) throw tooLarge(fileBytesMax)
    download.part.identify(download.ignoresValidators ? { ...version, validator: null } : version)
    claim.end = Math.min(claim.end, end ?? claim.end)
    onResponse()
    const received = await receiveBody(download, {
      body: response.body,
      claim,
      watchdog,
      isFramed: isFramed || hasKnownHash(download.file),
      bodyEnd: end,
    })
    if (received === 'excess') return { kind: 'excess' }
    if (received === 'completed' || end === null) return { kind: 'completed' }
    return truncated(claim)
  } catch (error) {
    signal.throwIfAborted()
    const reason = controller.signal.aborted ? controller.signal.reason : error
    const isSlow = reason instanceof SlowBodyError
    const failure = isSlow ? stalled(stallMs) : reason
    // Other errors are not the source's: a full disk, a forbidden host, a fault of this program.
    const isOfSource = failure instanceof AppError && failure.kind.startsWith('upstream_')
    if (!isOfSource || isPermanent(failure)) throw failure
    return { kind: 'failed', error: failure, bytesGained: claim.at - claim.start, isSlow }
  } finally {
    clearTimeout(timer)
    watchdog.stop()
    release()
    controller.abort()
  }
}

function rangeHeaders({ part }: FileDownload, range: Span | null): Record<string, string> {
  if (range === null) return {}
  const [start, end] = range
  const { validator } = part.version()
  return {
    range: `bytes=${start}-${Number.isFinite(end) ? end - 1 : ''}`,
    ...(validator === null ? {} : { 'if-range': validator }),
  }
}

function classify(
  download: FileDownload,
  { range, place }: Pick<RangeRequest, 'range' | 'place'>,
  response: Response,
): ResponseClass {
  const classified = classifyResponse(response, { range, place, known: download.part.version() })
  // Without a validator or a hash, ranges might belong to different versions.
  const isUnverifiable =
    range !== null && classified.kind === 'body' && classified.version.validator === null
  if (!isUnverifiable || hasKnownHash(download.file)) return classified
  const message = 'The source does not identify the version of a range.'
  return { kind: 'unrangeable', error: new AppError('upstream_invalid_answer', message) }
}

function outcomeWithoutBody(
  { part }: FileDownload,
  claim: Claim,
  classified: ResponseClass,
  isRedirected: boolean,
): RangeOutcome {
  switch (classified.kind) {
    case 'failed':
      // The target of a redirect may be an expired signed URL.
      if (isPermanent(classified.error) && !isRedirected) throw classified.error
      return { kind: 'failed', error: classified.error, bytesGained: 0, isSlow: false }
    case 'changed':
    case 'unrangeable':
      return classified
    case 'body':
      if ((part.version().bytes ?? 0) > 0) return truncated(claim)
  }
  part.identify({ ...part.version(), bytes: 0 })
  claim.end = claim.start
  return { kind: 'completed' }
}

function truncated(claim: Claim): RangeOutcome {
  const error = new AppError('upstream_truncated', 'The response of the source was truncated.')
  return { kind: 'failed', error, bytesGained: claim.at - claim.start, isSlow: false }
}

export function tooLarge(fileBytesMax: number): AppError {
  return new AppError('unprocessable', `The file exceeds the limit of ${fileBytesMax} bytes.`, {
    code: 'file_too_large',
  })
}

function stalled(stallMs: number): AppError {
  return new AppError(
    'upstream_gap_timeout',
    `The source sent almost no data for ${stallMs / 1000} s.`,
  )
}
