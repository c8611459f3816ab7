import { isRecord, parseJson } from '#lib/json.ts'
import { EngineError, type EngineErrorKind } from '#speech/engine.ts'
import type { EngineFetch } from './engine-kind.ts'
import type { Recognised, RecogniseRequest } from './segments/segment-session.ts'
import { bytesOf } from './server-audio.ts'
import { readText, readWords } from './words.ts'

/** How to reach the endpoint of a server. */
export type TranscriptionServer = {
  readonly url: string
  readonly key: string | undefined
  readonly model: string
  readonly sampleRateHz: number
  readonly fetch: EngineFetch
}

/** A request that the server did not answer with a transcript. */
export class TranscriptionError extends EngineError {
  /** Null if there was no response. */
  readonly status: number | null
  /** When the server wants to be asked again. */
  readonly retryAfterMs: number

  constructor(kind: EngineErrorKind, message: string, status: number | null, retryAfterMs = 0) {
    super(kind, message)
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

const bodyBytesMax = 1_048_576
const quotedCharsMax = 300
const retryAfterMsMax = 10_000
/** Whisper's own thresholds for text that it makes up in silence. */
const noSpeechMin = 0.6
const logProbabilityMax = -1

/** The endpoint for a URL without a path; a URL ending in /v1 is the base of an API. */
export function endpointOf(url: string): string {
  const parsed = new URL(url.replace(/^ws/i, 'http'))
  const path = parsed.pathname.replace(/\/+$/, '')
  if (path === '') parsed.pathname = '/v1/audio/transcriptions'
  else if (path.endsWith('/v1')) parsed.pathname = `${path}/audio/transcriptions`
  return parsed.href
}

/** Posts a piece of audio. `format`: `verbose_json` has the times of words. */
export async function requestTranscript(
  server: TranscriptionServer,
  { samples, language, prompt, signal }: RecogniseRequest,
  format: 'verbose_json' | 'json',
): Promise<Recognised> {
  const form = new FormData()
  form.append('file', new File([wavOf(samples, server.sampleRateHz)], 'audio.wav', wavType))
  form.append('model', server.model)
  form.append('language', language)
  form.append('response_format', format)
  form.append('temperature', '0')
  if (prompt !== '') form.append('prompt', prompt)
  if (format === 'verbose_json') form.append('timestamp_granularities[]', 'word')
  const { response, text } = await exchange(server, { method: 'POST', body: form, signal })
  if (!response.ok) throw errorOf(server, response, text)
  return readTranscript(text)
}

/** Rejects with an `EngineError` if the server cannot be reached or refuses the credential. */
export async function probeServer(server: TranscriptionServer, signal: AbortSignal): Promise<void> {
  const { response, text } = await exchange(server, { method: 'GET', signal })
  // Most servers know no GET there.
  if (response.status === 401 || response.status === 403 || response.status >= 500) {
    throw errorOf(server, response, text)
  }
}

async function exchange(server: TranscriptionServer, init: RequestInit) {
  const { url, key } = server
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
  try {
    const response = await server.fetch(url, { ...init, headers, redirect: 'error' })
    return { response, text: await readBody(response) }
  } catch (error) {
    if (error instanceof EngineError) throw error
    const name = error instanceof Error ? error.name : ''
    const reason = name === 'TimeoutError' ? 'it did not respond in time' : 'no connection'
    throw new TranscriptionError('unreachable', reason, null)
  }
}

async function readBody(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > bodyBytesMax) {
      throw new TranscriptionError('broken', 'its response is too long', response.status)
    }
    text += decoder.decode(chunk, { stream: true })
  }
  return text
}

function errorOf({ key }: TranscriptionServer, response: Response, text: string) {
  const { status } = response
  // Servers like to quote the credential.
  const safe = key === undefined ? text : text.replaceAll(key, '[redacted]')
  const seconds = Number(response.headers.get('retry-after') ?? 0)
  const retryAfterMs = Number.isFinite(seconds) ? Math.min(retryAfterMsMax, seconds * 1000) : 0
  const message = `the server responded with status ${status}: ${safe.slice(0, quotedCharsMax)}`
  return new TranscriptionError(kindOf(status), message, status, retryAfterMs)
}

function kindOf(status: number): EngineErrorKind {
  if (status === 429 || status === 503) return 'busy'
  return status >= 400 && status < 500 && status !== 408 ? 'refused' : 'broken'
}

function readTranscript(body: string): Recognised {
  const value = parseJson(body)
  if (!isRecord(value) || typeof value['text'] !== 'string') {
    const quoted = body.slice(0, quotedCharsMax)
    throw new TranscriptionError('broken', `its response has no text: ${quoted}`, 200)
  }
  const segments = Array.isArray(value['segments']) ? value['segments'].filter(isRecord) : []
  const isSilent = ({ no_speech_prob: silent, avg_logprob: likely }: Record<string, unknown>) =>
    Number(silent) > noSpeechMin && Number(likely) < logProbabilityMax
  if (segments.length > 0 && segments.every(isSilent)) return nothing
  const words = readWords(value['words'], 'confidence').map((word) => ({
    ...word,
    word: word.word.trim(),
  }))
  return { text: readText(value['text']), words, confidence: null }
}

const nothing: Recognised = { text: '', words: [], confidence: null }

const wavType = { type: 'audio/wav' }
const wavHeaderBytes = 44

/** 16-bit mono. */
function wavOf(samples: Int16Array, sampleRateHz: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(wavHeaderBytes + samples.byteLength)
  const view = new DataView(bytes.buffer)
  const mark = (at: number, text: string) => bytes.set(new TextEncoder().encode(text), at)
  mark(0, 'RIFF')
  view.setUint32(4, bytes.length - 8, true)
  mark(8, 'WAVEfmt ')
  view.setUint32(16, 16, true)
  view.setUint16(20, 1, true)
  view.setUint16(22, 1, true)
  view.setUint32(24, sampleRateHz, true)
  view.setUint32(28, sampleRateHz * 2, true)
  view.setUint16(32, 2, true)
  view.setUint16(34, 16, true)
  mark(36, 'data')
  view.setUint32(40, samples.byteLength, true)
  bytes.set(bytesOf(samples), wavHeaderBytes)
  return bytes
}
