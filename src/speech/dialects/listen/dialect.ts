import { isRecord, parseJson } from '#lib/json.ts'
import type { AudioFormat } from '#speech/decoders/decoder.ts'
import { sniff, sniffFrames } from '#speech/decoders/open-decoder.ts'
import { type DialectLink, type OpenDialect, renderStart } from '#speech/session/dialect.ts'
import type { SessionStats, UnsentFrame } from '#speech/session/server-frames.ts'
import { SessionError } from '#speech/session/session-error.ts'
import { expandG711 } from '../g711.ts'
import type { ListenParameters } from './parameters.ts'
import { channelIndex, renderMetadata, renderResults } from './results.ts'

/** The text frames of these clients are short. */
const textCharsMax = 65_536
/** Enough to tell containers apart. */
const sniffBytes = 12
const noModel = 'none'

export type ListenDeps = {
  readonly parameters: ListenParameters
  readonly requestId: string
  readonly now: () => Date
}

/** The streaming protocol of Deepgram's clients. */
export function openListen(deps: ListenDeps): OpenDialect {
  return (link) => createListen(deps, link)
}

function createListen({ parameters, requestId, now }: ListenDeps, link: DialectLink) {
  const createdAt = now().toISOString()
  const hash = new Bun.CryptoHasher('sha256')
  let isStarted = false
  /** The first bytes, until they tell the container. */
  let head: Buffer | null = Buffer.alloc(0)
  let engine = noModel
  /** Of finals; null after `UtteranceEnd`. */
  let lastWordEndS: number | null = null
  let isWordOpen = false
  let finalizedByFinal = false

  function start(format: AudioFormat): void {
    isStarted = true
    const { language, engineName, interimResults, utteranceEndMs, vocabulary } = parameters
    link.start(
      renderStart({
        language,
        engineName,
        format,
        partials: interimResults || utteranceEndMs !== null,
        progress: utteranceEndMs !== null,
        endpointingMs: parameters.endpointingMs ?? defaultEndpointingMs,
        vocabulary,
      }),
    )
  }

  function onAudio(message: Uint8Array): void {
    hash.update(message)
    if (head !== null) {
      const isWhole = parameters.encoding === 'opus'
      const bytes = Buffer.concat([head, message])
      if (bytes.length < sniffBytes && !isWhole && !isStarted) {
        head = bytes
        return
      }
      head = null
      if (!isStarted) start(detectFormat(parameters, bytes))
      link.input(toSamples(parameters, bytes))
    } else link.input(toSamples(parameters, message))
  }

  function onText(message: string): void {
    const event = parseJson(message)
    const type = isRecord(event) ? event['type'] : undefined
    switch (type) {
      case 'KeepAlive':
        if (isStarted) link.input({ type: 'keepalive' })
        break
      case 'Finalize':
        if (isStarted) link.input({ type: 'finalize', id: 'finalize' })
        else link.send(JSON.stringify(emptyResults(0)))
        break
      case 'CloseStream':
        end()
        break
      default:
        throw new SessionError(
          'invalid_message',
          'A text message must be JSON of type KeepAlive, Finalize or CloseStream.',
        )
    }
  }

  function end(): void {
    if (head !== null && head.length > 0 && !isStarted) start(detectFormat(parameters, head))
    if (head !== null && head.length > 0) link.input(toSamples(parameters, head))
    head = null
    if (isStarted) link.input({ type: 'session_end' })
    else {
      link.send(JSON.stringify(metadata(null)))
      link.finish()
    }
  }

  const emptyResults = (atS: number) =>
    renderResults(
      {
        type: 'transcript',
        is_final: true,
        speech_final: false,
        segment: 0,
        rev: 1,
        text: '',
        start: atS,
        end: atS,
        confidence: null,
        lang: parameters.language,
        words: [],
        from_finalize: 'finalize',
      },
      { requestId, engine, endsSpeech: false },
    )

  function metadata(stats: SessionStats | null) {
    const sha256 = hash.digest('hex')
    return renderMetadata({ requestId, engine, sha256, createdAt, channels: 1, stats })
  }

  function onTranscript(frame: Extract<UnsentFrame, { type: 'transcript' }>): object[] {
    isWordOpen = !frame.is_final
    if (frame.is_final) {
      lastWordEndS = frame.words?.at(-1)?.end ?? frame.end
      finalizedByFinal ||= frame.from_finalize !== null
    } else if (!parameters.interimResults) return []
    const endsSpeech = parameters.endpointingMs !== null
    return [renderResults(frame, { requestId, engine, endsSpeech })]
  }

  /** Once per gap between words of that length. */
  function utteranceEnd(processedMs: number): object[] {
    const { utteranceEndMs } = parameters
    if (utteranceEndMs === null || lastWordEndS === null || isWordOpen) return []
    if (processedMs < lastWordEndS * 1_000 + utteranceEndMs) return []
    const event = { type: 'UtteranceEnd', channel: channelIndex, last_word_end: lastWordEndS }
    lastWordEndS = null
    return [event]
  }

  function messagesOf(frame: UnsentFrame): object[] {
    switch (frame.type) {
      case 'session_ready':
        engine = frame.engine.name
        return []
      case 'speech_start':
        if (!parameters.vadEvents) return []
        return [{ type: 'SpeechStarted', channel: channelIndex, timestamp: frame.at }]
      case 'transcript':
        return onTranscript(frame)
      case 'audio_ack':
        return utteranceEnd(frame.processed_ms)
      case 'finalized': {
        const wasAnswered = finalizedByFinal
        finalizedByFinal = false
        return wasAnswered ? [] : [emptyResults(frame.audio_ms / 1_000)]
      }
      case 'warning':
        if (frame.code !== 'audio_lost') return []
        return [{ type: 'Warning', code: frame.code, description: frame.message }]
      case 'error': {
        const { code, message } = frame.error
        return [
          { type: 'Error', variant: code, description: message, message, request_id: requestId },
        ]
      }
      case 'session_end':
        return [...utteranceEnd(frame.stats.audio_ms), metadata(frame.stats)]
    }
  }

  return {
    textCharsMax,
    idleMs: null,
    endsByClosing: false,
    open() {
      const { encoding } = parameters
      if (encoding === null || encoding === 'opus') return
      start(detectFormat(parameters, Buffer.alloc(0)))
      head = null
    },
    receive(message: string | Uint8Array) {
      if (typeof message === 'string') onText(message)
      else if (message.length === 0) end()
      else onAudio(message)
    },
    render: (frame: UnsentFrame) => messagesOf(frame).map((message) => JSON.stringify(message)),
    closing: closeOf,
  }
}

const defaultEndpointingMs = 600

function toSamples({ encoding }: ListenParameters, bytes: Uint8Array): Uint8Array {
  return encoding === 'mulaw' || encoding === 'alaw' ? expandG711(bytes, encoding) : bytes
}

/** Throws `wrong_encoding` for bytes of no known container. */
function detectFormat(parameters: ListenParameters, bytes: Uint8Array): AudioFormat {
  const { encoding, sampleRateHz, channels } = parameters
  switch (encoding) {
    case 'linear16':
    case 'mulaw':
    case 'alaw':
      return { encoding: 'pcm_int16', container: 'auto', sampleRateHz, channels }
    case 'ogg-opus':
      return { encoding: 'opus', container: 'ogg', sampleRateHz: null, channels: 1 }
    case 'opus': {
      const container = sniff(bytes)?.encoding === 'opus' ? 'auto' : 'raw'
      return { encoding: 'opus', container, sampleRateHz: null, channels: 1 }
    }
    case null: {
      const found = sniff(bytes) ?? sniffFrames(bytes)
      if (found?.encoding) {
        return { encoding: found.encoding, container: 'auto', sampleRateHz: null, channels: 1 }
      }
      const name = found === null ? 'Its format is unknown' : `It is ${found.name}`
      const message = `The audio is neither WAV, MP3, nor Opus in Ogg or WebM. ${name}: declare "encoding" and "sample_rate" for raw audio.`
      throw new SessionError('wrong_encoding', message, { param: 'encoding' })
    }
  }
}

/** The maximum of the WebSocket protocol. */
const reasonBytesMax = 123
const closeNames: Readonly<Record<string, { code: number; name: string }>> = {
  idle_timeout: { code: 1011, name: 'NET-0001' },
  wrong_encoding: { code: 1008, name: 'DATA-0000' },
  unsupported_container: { code: 1008, name: 'DATA-0000' },
  unsupported_audio: { code: 1008, name: 'DATA-0000' },
  bad_audio: { code: 1008, name: 'DATA-0000' },
  invalid_message: { code: 1008, name: 'DATA-0000' },
  engine_failed: { code: 1011, name: 'NET-0000' },
  engine_stalled: { code: 1011, name: 'NET-0000' },
  finalize_timeout: { code: 1011, name: 'NET-0000' },
  internal_error: { code: 1011, name: 'NET-0000' },
}

function closeOf(code: number, reason: string): { code: number; reason: string } {
  const known = closeNames[reason]
  if (known === undefined) return { code, reason }
  return { code: known.code, reason: `${known.name}: ${reason}`.slice(0, reasonBytesMax) }
}
