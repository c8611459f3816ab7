import { AppError } from '#lib/errors.ts'
import { exchange, tooLong } from './exchange.ts'
import { type Ending, fetchRanges } from './fetch-ranges.ts'
import { type FetchJob, isVouchedFor, startOver } from './job.ts'

/** A source whose file is ever another one is given up. */
const changesMax = 3
/** A source that says another length than it should is asked once more. */
const wrongLengthsMax = 1

/** Brings all bytes of a file onto the disk, and answers how many they are. */
export async function fetchFile(job: FetchJob): Promise<number> {
  const { part, file, say } = job
  const faults = { changes: 0, wrongLengths: 0 }
  let isWhole = false
  let ignoresValidators = false
  for (;;) {
    job.signal.throwIfAborted()
    const { bytes } = part.version()
    if (bytes !== null && part.bytesWritten() === bytes) return bytes
    if (isWhole && part.bytesWritten() > 0) await startOver(job)
    const attempt = { ...job, ignoresValidators }
    const ending: Ending = await (isWhole ? fetchWhole(attempt) : fetchRanges(attempt))
    switch (ending.kind) {
      case 'filled':
        continue
      case 'unrangeable':
        say('warn', `${ending.error.message} The file is fetched as a whole.`)
        isWhole = true
        break
      case 'excess':
        say('warn', 'The source sends more than it should; the file is fetched again.')
        count(faults, isWhole)
        isWhole = true
        break
      case 'changed':
        say('warn', 'The source has another file than it had; it is fetched from its beginning.')
        count(faults, isOtherLength(file.bytes, ending.bytes))
        ignoresValidators = isVouchedFor(file)
    }
    await startOver(job)
  }
}

/** What is not known is no difference. */
function isOtherLength(wanted: number | null, found: number | null): boolean {
  return wanted !== null && found !== null && wanted !== found
}

/** Throws where it has happened too often. */
function count(faults: { changes: number; wrongLengths: number }, isWrongLength: boolean): void {
  if (isWrongLength) faults.wrongLengths++
  else faults.changes++
  if (faults.wrongLengths > wrongLengthsMax) {
    throw invalid('The source does not send as many bytes as it should.', 'length_mismatch')
  }
  if (faults.changes > changesMax) {
    throw invalid('The file changes at its source while it is fetched.', 'source_changed')
  }
}

/** Over one connection from the beginning, each time that it breaks off. */
async function fetchWhole(job: FetchJob): Promise<Ending> {
  const { part, file, patience, settings, signal } = job
  for (let triesInVain = 0; ; triesInVain++) {
    const end = file.bytes ?? settings.fileBytesMax + 1
    const claim = { start: 0, at: 0, end }
    const outcome = await exchange(job, { claim, isPart: false, signal, onAnswered: () => {} })
    if (outcome.kind === 'filled') {
      if (claim.at > settings.fileBytesMax) throw tooLong(settings.fileBytesMax)
      part.identify({ ...part.version(), bytes: claim.at })
    }
    if (outcome.kind !== 'failed') return outcome
    await patience.failed(outcome, triesInVain, signal)
    await startOver(job)
  }
}

function invalid(sentence: string, code: string): AppError {
  return new AppError('upstream_invalid_answer', sentence, { code })
}
