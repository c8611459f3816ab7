import type { Transport, UpstreamHttpResponse } from '#inference/transport.ts'
import { viewOf } from '#inference/transport.ts'
import type { Upstream } from '#inference/upstream.ts'
import { hideUpstream, hideUpstreamIn } from '#inference/upstream-error.ts'
import { requestHeaders, requireSuccess } from '#inference/upstream-http.ts'
import { followSignal, sleep, Watchdog } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import type { DownloadStatus } from './installer.ts'
import type { Run } from './run.ts'
import { isFinal, type Source } from './sources/source.ts'
import type { FileState } from './store.ts'

export type PullDeps = {
  transport: Transport
  /** The configured ones, by their names. */
  upstreams: ReadonlyMap<string, Upstream>
  settings: { readonly attemptsMax: number; readonly backoffMs: number }
}

/** A long file is hashed over there without a word. */
const silenceMaxMs = 600_000
const pauseMaxMs = 60_000
const lineCharsMax = 65_536
const messageCharsMax = 500
/** The code of a failure that the upstream itself told of. */
const saidSo = 'pull_failed'

/**
 * Lets an upstream bring a model to itself, as Ollama's `/api/pull` does: it says how far it is, a
 * line of JSON at a time, and goes on by itself where it was broken off.
 */
export async function pull(
  { transport, upstreams, settings }: PullDeps,
  { row, progress, signal }: Run,
  source: Extract<Source, { kind: 'upstream' }>,
): Promise<void> {
  const upstream = upstreams.get(source.upstream)
  if (upstream === undefined) {
    throw new AppError('not_found', `There is no upstream "${source.upstream}" any more.`)
  }
  const reading = createReading({ row, progress, signal })
  for (let tries = 1; ; tries++) {
    const before = reading.bytes()
    try {
      return await pullOnce({ transport, upstream, signal }, source.model, reading.take)
    } catch (error) {
      signal.throwIfAborted()
      const failure = hideUpstreamIn(error, upstream)
      if (!(failure instanceof AppError)) throw failure
      // A try that brought something is none of those in a row that did not.
      if (reading.bytes() > before) tries = 1
      if (isDecided(failure) || tries >= settings.attemptsMax) throw failure
      progress.say('warn', `${failure.message} It is asked again.`)
      await sleep(Math.min(settings.backoffMs * 2 ** (tries - 1), pauseMaxMs), signal)
    }
  }
}

type Asking = { transport: Transport; upstream: Upstream; signal: AbortSignal }

async function pullOnce(
  { transport, upstream, signal }: Asking,
  model: string,
  take: (line: JsonObject) => void,
): Promise<void> {
  const { controller, release } = followSignal(signal)
  const silence = new Watchdog(silenceMaxMs, () => {
    controller.abort(new AppError('upstream_gap_timeout', 'The upstream says nothing any more.'))
  })
  try {
    silence.begin()
    const answer = await transport.send({
      upstream: upstream.name,
      url: `${upstream.baseUrl.replace(/\/v1$/, '')}/api/pull`,
      method: 'POST',
      headers: requestHeaders(upstream, 'application/x-ndjson'),
      body: JSON.stringify({ model, stream: true }),
      signal: controller.signal,
    })
    await requireSuccess(answer, upstream)
    for await (const line of linesOf(answer)) {
      silence.begin()
      const said = asRecord(parseJson(line))
      if (isRecord(said['error']) || typeof said['error'] === 'string') {
        throw refusal(said['error'], upstream)
      }
      take(said)
      if (said['status'] === 'success') return
    }
    throw new AppError('upstream_truncated', 'The upstream broke off before it was done.')
  } finally {
    silence.stop()
    release()
  }
}

async function* linesOf({ chunks }: UpstreamHttpResponse): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(viewOf(chunk), { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > lineCharsMax) {
      throw new AppError('upstream_invalid_answer', 'The upstream sends a line without an end.')
    }
    yield* lines.filter((line) => line.trim() !== '')
  }
  if (rest.trim() !== '') yield rest
}

function refusal(said: unknown, upstream: Upstream): AppError {
  const words = typeof said === 'string' ? said : String(asRecord(said)['message'] ?? '')
  const message = hideUpstream(words.slice(0, messageCharsMax), upstream)
  const isUnknown = /not found|does not exist|file does not exist/i.test(words)
  const sentence = `The upstream says: ${message || 'it failed'}`
  return isUnknown
    ? new AppError('not_found', sentence)
    : new AppError('upstream_error', sentence, { code: saidSo })
}

/** It tries again by itself before it says so. */
function isDecided(failure: AppError): boolean {
  return isFinal(failure) || failure.wireCode === saidSo
}

/** What the lines mean for the record. Each digest is a file to us. */
function createReading({ row, progress }: Run) {
  const files = new Map<string, FileState>(row.files.map((file) => [file.path, file]))
  let saidLast = ''
  const bytes = () => progress.files().reduce((sum, file) => sum + file.bytesCompleted, 0)

  function note(path: string, total: number) {
    files.set(path, {
      path,
      part: null,
      sha256: null,
      isVerified: false,
      bytesTotal: total,
      bytesCompleted: 0,
      status: 'downloading',
    })
    const bytesTotal = [...files.values()].reduce((sum, file) => sum + (file.bytesTotal ?? 0), 0)
    const known = new Map(progress.files().map((file) => [file.path, file]))
    const states = [...files.values()].map((file) => known.get(file.path) ?? file)
    progress.setFiles(states, { bytesTotal })
  }

  return {
    bytes,
    take({ status, digest, total, completed }: JsonObject) {
      const said = typeof status === 'string' ? status.slice(0, messageCharsMax) : ''
      if (said !== saidLast && said !== '') progress.say('info', said)
      saidLast = said
      progress.setStatus(statusOf(said))
      if (typeof digest !== 'string' || !isCount(total)) return
      if (!files.has(digest)) note(digest, total)
      const bytesCompleted = isCount(completed) ? Math.min(completed, total) : 0
      const isWhole = bytesCompleted === total
      progress.setFile(digest, { bytesCompleted, ...(isWhole ? { status: 'completed' } : {}) })
    },
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function statusOf(said: string): DownloadStatus {
  if (said.startsWith('verifying')) return 'verifying'
  if (/^(writing|removing|success)/.test(said)) return 'committing'
  return said.startsWith('pulling manifest') || said === '' ? 'resolving' : 'downloading'
}
