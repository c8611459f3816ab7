import { AppError } from '#lib/errors.ts'
import { type Usage, usageOfTokens } from './events.ts'
import type { OpenCall } from './open-call.ts'
import { viewOf } from './transport.ts'
import type { AdapterContext } from './upstream.ts'
import { requestHeaders, requireSuccess, urlOf } from './upstream-http.ts'

/** The formats of POST /audio/speech. */
export const speechFormats = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'] as const
type SpeechFormat = (typeof speechFormats)[number]

export type SpeakInput = {
  readonly text: string
  readonly voice: string | { readonly id: string }
  readonly format: SpeechFormat
  /** Absent: the upstream's own. */
  readonly speed?: number
  readonly instructions?: string
}

/** What an upstream speaks, while it speaks it: read with backpressure. */
export type SpokenAudio = {
  readonly contentType: string
  /** Of what was read so far; null where the format does not tell. */
  readonly audioMs: () => number | null
  /** `return` ends the call, also before the first read. */
  readonly bytes: AsyncIterator<Uint8Array, undefined> & {
    return(): Promise<IteratorReturnResult<undefined>>
  }
}

/** The first bytes have arrived, so that a failure before them can be retried elsewhere. */
export type OpenedSpeech = {
  readonly contentType: string
  readonly first: Uint8Array
  readonly next: () => Promise<Uint8Array | null>
  readonly cancel: () => void
}

const contentTypes: Readonly<Record<SpeechFormat, string>> = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
}

/** POST /audio/speech as OpenAI defines it. */
export async function postSpeech(
  input: SpeakInput,
  context: AdapterContext,
): Promise<OpenedSpeech> {
  const { identity, upstream, transport, signal, model } = context
  const { text, voice, format, speed, instructions } = input
  const response = await transport.send({
    upstream: upstream.name,
    url: urlOf(upstream, '/audio/speech'),
    method: 'POST',
    headers: requestHeaders(upstream, '*/*'),
    body: JSON.stringify({
      model,
      input: text,
      voice,
      response_format: format,
      ...(speed === undefined ? {} : { speed }),
      ...(instructions === undefined ? {} : { instructions }),
    }),
    identity,
    signal,
  })
  identity?.trace?.span?.set({ 'http.response.status_code': response.status })
  await requireSuccess(response, upstream)
  const { chunks } = response
  const contentType = response.header('content-type') ?? contentTypes[format]
  const next = async () => {
    for (;;) {
      const { done, value } = await chunks.next()
      if (done || value === undefined) return null
      // The transport reuses its buffers, and the client may read later.
      if (value.end > value.start) return Uint8Array.from(viewOf(value))
    }
  }
  const cancel = () => void chunks.return()
  if (!isAudio(contentType)) {
    cancel()
    throw notAudio(contentType)
  }
  const first = await next()
  if (first === null)
    throw new AppError('upstream_invalid_answer', 'The upstream returned no audio.')
  return { contentType, first, next, cancel }
}

function isAudio(contentType: string): boolean {
  return /^(audio\/|application\/(octet-stream|ogg))/i.test(contentType)
}

function notAudio(contentType: string): AppError {
  const shown = contentType.slice(0, 64)
  return new AppError('upstream_invalid_answer', `The upstream returned ${shown} instead of audio.`)
}

type Deadlines = { readonly gapMs: number; readonly totalMs: number }

/** The audio of a call, which is settled exactly once: at the end, a failure, or `return`. */
export function readSpeech(
  open: Pick<OpenCall, 'record' | 'complete' | 'fail' | 'abort' | 'startedAtMs'>,
  opened: OpenedSpeech,
  given: {
    readonly input: SpeakInput
    readonly deadlines: Deadlines
    readonly settle: () => void
  },
): SpokenAudio {
  const { input, deadlines, settle } = given
  const clock = createAudioClock(input.format, opened.first)
  let first: Uint8Array | null = opened.first
  let isOver = false

  function end(): void {
    isOver = true
    open.record.audioMs = clock() ?? 0
    settle()
  }

  async function read(): Promise<Uint8Array | null> {
    if (first !== null) {
      const bytes = first
      first = null
      return bytes
    }
    const leftMs = open.startedAtMs + deadlines.totalMs - performance.now()
    const isLast = leftMs < deadlines.gapMs
    const error = isLast ? totalTimeout(deadlines.totalMs) : gapTimeout(deadlines.gapMs)
    const timer = setTimeout(
      () => open.abort(error),
      Math.max(0, Math.min(leftMs, deadlines.gapMs)),
    )
    try {
      return await opened.next()
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    contentType: opened.contentType,
    audioMs: () => clock(),
    bytes: {
      async next() {
        if (isOver) return { done: true, value: undefined }
        try {
          const value = await read()
          if (isOver) return { done: true, value: undefined }
          if (value !== null) {
            clock(value)
            return { done: false, value }
          }
          open.complete(charsUsage(input))
          end()
          return { done: true, value: undefined }
        } catch (error) {
          const failure = open.fail(error)
          if (!isOver) end()
          throw failure
        }
      },
      async return() {
        if (!isOver) {
          open.abort()
          opened.cancel()
          end()
        }
        return { done: true, value: undefined }
      },
    },
  }
}

/** Characters count as input tokens: vendors charge by them. */
function charsUsage({ text }: SpeakInput): Usage {
  return usageOfTokens(text.length, 0)
}

/** 16-bit mono samples at this rate are what the format `pcm` means. */
const pcmBytesPerMs = 48
const wavHeaderBytes = 44
const byteRateOffset = 28

/** Counts bytes; returns the milliseconds so far, null for compressed formats. */
function createAudioClock(format: SpeechFormat, head: Uint8Array) {
  const perMs = bytesPerMs(format, head)
  let bytes = format === 'wav' ? -wavHeaderBytes : 0
  return (more?: Uint8Array): number | null => {
    bytes += more?.length ?? 0
    return perMs === null ? null : Math.max(0, Math.round(bytes / perMs))
  }
}

function bytesPerMs(format: SpeechFormat, head: Uint8Array): number | null {
  if (format === 'pcm') return pcmBytesPerMs
  if (format !== 'wav' || head.length < wavHeaderBytes) return null
  const rate = Buffer.from(head.buffer, head.byteOffset, head.length).readUInt32LE(byteRateOffset)
  return rate === 0 ? null : rate / 1_000
}

function gapTimeout(gapMs: number): AppError {
  const message = `The upstream sent nothing for ${gapMs / 1_000} s in the middle of its response.`
  return new AppError('upstream_gap_timeout', message)
}

function totalTimeout(totalMs: number): AppError {
  const message = `The upstream did not finish within ${totalMs / 1_000} s.`
  return new AppError('upstream_total_timeout', message)
}
