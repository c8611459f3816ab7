import { hasKnownHash } from '#installer/sources/source.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { type RangeOutcome, requestRange, tooLarge } from './range-request.ts'
import { createClaims } from './ranges.ts'
import type { FileDownload } from './transfer.ts'

/** Why no more ranges are fetched; `completed`: none is missing. */
type FetchEnd = Exclude<RangeOutcome, { kind: 'failed' }>

/** Version changes during a download before it fails. */
const changesMax = 3
/** Wrong lengths before the download fails. */
const wrongLengthsMax = 1
/** Consecutive invalid range responses, after valid ones, before ranges are given up. */
const invalidRangesMax = 3

/** Downloads all bytes of a file; returns their number. */
export async function fetchFile(download: FileDownload): Promise<number> {
  const { part, file, logLine } = download
  const faults = { changes: 0, wrongLengths: 0 }
  let isWhole = false
  let ignoresValidators = false
  for (;;) {
    download.signal.throwIfAborted()
    const { bytes } = part.version()
    if (bytes !== null && part.bytesWritten() === bytes) return bytes
    if (isWhole && part.bytesWritten() > 0) await part.restart()
    const attempt = { ...download, ignoresValidators }
    const end: FetchEnd = await (isWhole ? fetchWhole(attempt) : fetchRanges(attempt))
    switch (end.kind) {
      case 'completed':
        continue
      case 'unrangeable':
        logLine('warn', `${end.error.message} Downloading the whole file.`)
        isWhole = true
        break
      case 'excess':
        logLine('warn', 'The source sends more bytes than it declared; downloading again.')
        countFault(faults, isWhole)
        isWhole = true
        break
      case 'changed':
        logLine('warn', 'The file has changed at the source; downloading from its beginning.')
        countFault(faults, file.bytes !== null && end.bytes !== null && file.bytes !== end.bytes)
        ignoresValidators = hasKnownHash(file)
    }
    await part.restart()
  }
}

function countFault(
  faults: { changes: number; wrongLengths: number },
  isWrongLength: boolean,
): void {
  if (isWrongLength) faults.wrongLengths++
  else faults.changes++
  if (faults.wrongLengths > wrongLengthsMax) {
    throw invalid('The file has another length than the source declared.', 'length_mismatch')
  }
  if (faults.changes > changesMax) {
    throw invalid('The file keeps changing at the source.', 'source_changed')
  }
}

function invalid(message: string, code: string): AppError {
  return new AppError('upstream_invalid_answer', message, { code })
}

/** Downloads over one connection, from the beginning after each failure. */
async function fetchWhole(download: FileDownload): Promise<FetchEnd> {
  const { part, file, retryBudget, settings, signal } = download
  for (let failures = 0; ; failures++) {
    const end = file.bytes ?? settings.fileBytesMax + 1
    const claim = { start: 0, at: 0, end }
    const options = { claim, isPart: false, signal, onResponse: () => {} }
    const outcome = await requestRange(download, options)
    if (outcome.kind === 'completed') {
      if (claim.at > settings.fileBytesMax) throw tooLarge(settings.fileBytesMax)
      part.identify({ ...part.version(), bytes: claim.at })
    }
    if (outcome.kind !== 'failed') return outcome
    await retryBudget.failed(outcome, failures, signal)
    await part.restart()
  }
}

/**
 * Fetches the missing ranges over several connections. The first one starts alone: its response
 * shows the length of the file and whether the source supports ranges.
 */
async function fetchRanges(download: FileDownload): Promise<FetchEnd> {
  const { part, retryBudget, settings } = download
  const rangeBytes = settings.rangesMax === 1 ? Number.POSITIVE_INFINITY : settings.rangeBytes
  const claims = createClaims(part.written, rangeBytes)
  const { controller, release } = followSignal(download.signal)
  const { signal } = controller
  const connections = new Set<Promise<void>>()
  let fetchEnd: FetchEnd | null = null
  let failure: unknown
  let supportsRanges = false

  const stop = (end: FetchEnd | null, error?: unknown) => {
    fetchEnd ??= end
    failure ??= error
    controller.abort(stopped)
  }
  const connect = () => {
    const connection = runConnection().catch((error) => {
      if (error !== stopped) stop(null, error)
    })
    connections.add(connection)
    void connection.finally(() => connections.delete(connection))
  }
  const onResponse = (isPart: boolean) => {
    if (supportsRanges || !isPart) return
    supportsRanges = true
    for (let count = 1; count < settings.rangesMax; count++) connect()
  }
  async function runConnection() {
    const counts = { fruitless: 0, invalidRanges: 0 }
    for (;;) {
      const claim = claims.take(part.version().bytes)
      if (claim === null) return
      const isPart = claim.start > 0 || claim.end !== part.version().bytes
      const outcome = await requestRange(download, {
        claim,
        isPart,
        signal,
        onResponse: () => onResponse(isPart),
      }).finally(() => claims.release(claim))
      if (!(await mayContinue(outcome, counts))) return
    }
  }
  async function mayContinue(
    outcome: RangeOutcome,
    counts: { fruitless: number; invalidRanges: number },
  ): Promise<boolean> {
    switch (outcome.kind) {
      case 'completed':
        counts.fruitless = 0
        counts.invalidRanges = 0
        retryBudget.completed()
        return true
      case 'failed':
        // An overloaded source gets fewer connections.
        if (outcome.error.kind === 'upstream_overloaded' && claims.count() > 0) return false
        counts.fruitless = outcome.bytesGained > 0 ? 0 : counts.fruitless + 1
        await retryBudget.failed(outcome, counts.fruitless, signal)
        return true
      case 'unrangeable':
        if (supportsRanges && ++counts.invalidRanges < invalidRangesMax) {
          const attempt = { error: outcome.error, bytesGained: 0, isSlow: false }
          await retryBudget.failed(attempt, ++counts.fruitless, signal)
          return true
        }
        stop(outcome)
        return false
      default:
        stop(outcome)
        return false
    }
  }

  connect()
  while (connections.size > 0) await Promise.all(connections)
  release()
  download.signal.throwIfAborted()
  if (failure !== undefined) throw failure
  return fetchEnd ?? { kind: 'completed' }
}

const stopped = new Error('the other connections were stopped')
