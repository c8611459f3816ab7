import type { Transport, UpstreamHttpResponse } from '#inference/transport.ts'
import { viewOf } from '#inference/transport.ts'
import type { Upstream } from '#inference/upstream.ts'
import { hideUpstream, hideUpstreamIn } from '#inference/upstream-error.ts'
import { requestHeaders, requireSuccess } from '#inference/upstream-http.ts'
import { followSignal, Watchdog } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import {
  type DownloadStatus,
  type FileState,
  type InstallerContext,
  waitingFile,
} from './installer.ts'
import type { DownloadAttempt } from './progress.ts'
import { withRetries } from './retry.ts'
import type { Source } from './sources/source.ts'

/** Upstreams hash large files without sending progress. */
const silenceMaxMs = 600_000
const lineCharsMax = 65_536
const messageCharsMax = 500
/** The code of an error that the upstream reported. */
const reportedCode = 'pull_failed'
const reported = 'The upstream reported:'

/**
 * Lets an upstream download a model to itself by Ollama's `/api/pull`, which reports progress as
 * JSON lines and resumes interrupted downloads.
 */
export async function pull(
  deps: InstallerContext,
  attempt: DownloadAttempt,
  source: Extract<Source, { kind: 'upstream' }>,
): Promise<void> {
  const { transport, findUpstream } = deps
  const { signal } = attempt
  const upstream = findUpstream(source.upstream)
  if (upstream === undefined) {
    throw new AppError('not_found', `The upstream "${source.upstream}" no longer exists.`)
  }
  const update = createPullProgress(attempt)
  await withRetries(deps, attempt, () =>
    pullOnce({ transport, upstream, signal }, source.model, update).catch((error) => {
      throw nameUpstream(hideUpstreamIn(error, upstream), upstream)
    }),
  )
}

async function pullOnce(
  given: { transport: Transport; upstream: Upstream; signal: AbortSignal },
  model: string,
  onLine: (line: JsonObject) => void,
): Promise<void> {
  const { transport, upstream, signal } = given
  const { controller, release } = followSignal(signal)
  const watchdog = new Watchdog(silenceMaxMs, () => {
    controller.abort(new AppError('upstream_gap_timeout', 'The upstream stopped responding.'))
  })
  try {
    watchdog.begin()
    const response = await transport.send({
      upstream: upstream.name,
      url: `${upstream.baseUrl.replace(/\/v1$/, '')}/api/pull`,
      method: 'POST',
      headers: requestHeaders(upstream, 'application/x-ndjson'),
      body: JSON.stringify({ model, stream: true }),
      signal: controller.signal,
    })
    await requirePull(response, upstream)
    for await (const text of linesOf(response)) {
      watchdog.begin()
      const line = asRecord(parseJson(text))
      const { error } = line
      if (isRecord(error) || typeof error === 'string') throw reportedError(error, upstream)
      onLine(line)
      if (line['status'] === 'success') return
    }
    throw new AppError('upstream_truncated', 'The upstream response ended prematurely.')
  } finally {
    watchdog.stop()
    release()
  }
}

/** Names the upstream, and the setting that a failed connection calls into question. */
function nameUpstream(error: unknown, { name }: Upstream): unknown {
  // What the upstream itself reports is not about its URL.
  if (!(error instanceof AppError) || error.message.startsWith(reported)) return error
  const named = error.message.replace(/^The upstream\b/, `The upstream "${name}"`)
  const message = `${named} See its url in [[upstream]], or SLUICE_UPSTREAM_URL.`
  const { kind, wireCode: code, retryAfterS } = error
  const retry = retryAfterS === undefined ? {} : { retryAfterS }
  return new AppError(kind, message, { code, cause: error, ...retry })
}

/** Statuses of a refusal that a retry can cure. */
const busyStatuses = new Set([408, 425, 429])

async function requirePull(response: UpstreamHttpResponse, upstream: Upstream): Promise<void> {
  const { status } = response
  if (status < 400 || status > 499 || busyStatuses.has(status)) {
    return requireSuccess(response, upstream)
  }
  const cause = await requireSuccess(response, upstream).catch((error) => error)
  throw new AppError(
    status === 404 ? 'not_found' : 'upstream_refused',
    `The upstream refused /api/pull with status ${status}; only Ollama servers download models.`,
    { cause },
  )
}

async function* linesOf({ chunks }: UpstreamHttpResponse): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(viewOf(chunk), { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > lineCharsMax) {
      throw new AppError('upstream_invalid_answer', 'The upstream sent a line that is too long.')
    }
    yield* lines.filter((line) => line.trim() !== '')
  }
  if (rest.trim() !== '') yield rest
}

function reportedError(error: JsonObject | string, upstream: Upstream): AppError {
  const text = typeof error === 'string' ? error : String(error['message'] ?? '')
  const shown = hideUpstream(text.slice(0, messageCharsMax), upstream)
  const message = `${reported} ${shown || 'an unknown error'}`
  return /not found|does not exist/i.test(text)
    ? new AppError('not_found', message)
    : // The upstream retries by itself before it reports an error.
      new AppError('upstream_refused', message, { code: reportedCode })
}

/** Translates progress lines to the state of the download. Each digest is a file. */
function createPullProgress({ row, progress }: DownloadAttempt): (line: JsonObject) => void {
  const files = new Map<string, FileState>(row.files.map((file) => [file.path, file]))
  let lastStatus = ''

  function addFile(path: string, total: number) {
    files.set(path, { ...waitingFile(path, total), status: 'downloading' })
    const bytesTotal = [...files.values()].reduce((sum, file) => sum + (file.bytesTotal ?? 0), 0)
    const known = new Map(progress.files().map((file) => [file.path, file]))
    const states = [...files.values()].map((file) => known.get(file.path) ?? file)
    progress.setFiles(states, { bytesTotal })
  }

  return ({ status, digest, total, completed }) => {
    const text = typeof status === 'string' ? status.slice(0, messageCharsMax) : ''
    if (text !== lastStatus && text !== '') progress.logLine('info', text)
    lastStatus = text
    progress.setStatus(statusOf(text))
    if (typeof digest !== 'string' || !isCount(total)) return
    if (!files.has(digest)) addFile(digest, total)
    const bytesCompleted = isCount(completed) ? Math.min(completed, total) : 0
    const isComplete = bytesCompleted === total
    progress.setFile(digest, { bytesCompleted, ...(isComplete ? { status: 'completed' } : {}) })
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function statusOf(text: string): DownloadStatus {
  if (text.startsWith('verifying')) return 'verifying'
  if (/^(writing|removing|success)/.test(text)) return 'committing'
  return text.startsWith('pulling manifest') || text === '' ? 'resolving' : 'downloading'
}
