import { newId } from '#lib/id.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { type DialectLink, type OpenDialect, renderStart } from '#speech/session/dialect.ts'
import type { UnsentFrame } from '#speech/session/server-frames.ts'
import { SessionError } from '#speech/session/session-error.ts'
import { chooseLanguage, type SpeechChoices } from '../choice.ts'
import { expandG711 } from '../g711.ts'
import { invalidValue, RealtimeError } from './errors.ts'
import { renderSession } from './session-object.ts'
import {
  chooseModel,
  defaultSettings,
  pcmRateHz,
  type RealtimeSettings,
  readBetaSession,
  readSession,
  vocabularyOf,
} from './settings.ts'
import { type TurnEvent, Turns } from './turns.ts'

export type RealtimeDeps = {
  readonly choices: SpeechChoices
  readonly parameters: URLSearchParams
  /** The older form of the protocol, until the client uses the present one. */
  readonly isBeta: boolean
  readonly idleMs: number
  readonly now: () => Date
  readonly sessionMsMax: number
  /** The longest audio message of native sessions. */
  readonly frameBytesMax: number
}

/** The protocol allows 15 MiB; clients send fractions of a second. */
const audioBytesMax = 1_048_576
/** The text around the audio of a message. */
const envelopeChars = 4_096
/** A shorter turn is an error of this protocol. */
const commitMsMin = 100
const g711RateHz = 8_000
const clientEvents = [
  'session.update',
  'transcription_session.update',
  'input_audio_buffer.append',
  'input_audio_buffer.commit',
  'input_audio_buffer.clear',
]
const base64 = /^[A-Za-z0-9+/]*={0,2}$/

/** The realtime transcription protocol of OpenAI's clients. */
export function openRealtime(deps: RealtimeDeps): OpenDialect {
  return (link) => createRealtime(deps, link)
}

function createRealtime(deps: RealtimeDeps, link: DialectLink) {
  const sessionId = newId('sess_')
  const expiresAt = Math.floor((deps.now().getTime() + deps.sessionMsMax) / 1_000)
  let { isBeta } = deps
  let settings: RealtimeSettings = defaultSettings
  /** What the session was started with; null: it was not. */
  let started: RealtimeSettings | null = null
  const turns = new Turns(true, () => isBeta)

  const text = ({ type, ...fields }: TurnEvent) =>
    JSON.stringify({ type, event_id: newId('event_'), ...fields })
  const send = (event: TurnEvent) => link.send(text(event))
  const session = () => renderSession(settings, { sessionId, expiresAt, isBeta })
  const sessionType = () => (isBeta ? 'transcription_session' : 'session')

  function update(event: JsonObject, usesBeta: boolean): void {
    const { session: fields } = event
    if (!isRecord(fields))
      throw new RealtimeError('missing_required_parameter', '"session" is required.', 'session')
    const reading = { choices: deps.choices, principal: link.principal(), before: settings }
    const next = usesBeta ? readBetaSession(fields, reading) : readSession(fields, reading)
    requireChangeable(started, next)
    isBeta = usesBeta
    settings = next
    turns.detects = next.turnDetection !== null
    turns.includesLogprobs = next.includesLogprobs
    send({ type: `${sessionType()}.updated`, session: session() })
  }

  function start(): void {
    if (started !== null) return
    const { format, languageTag, engineName, turnDetection } = settings
    const language = chooseLanguage(deps.choices, languageTag ?? 'en')
    if (language === null) {
      throw new RealtimeError(
        'unsupported_language',
        'No engine transcribes English; set the language of the transcription.',
        'session.audio.input.transcription.language',
      )
    }
    started = settings
    link.start(
      renderStart({
        language,
        engineName,
        format: {
          encoding: 'pcm_int16',
          container: 'auto',
          channels: 1,
          sampleRateHz: rateOf(format),
        },
        // Deltas cannot be withdrawn, so they contain only finals.
        partials: false,
        progress: false,
        endpointingMs: (turnDetection ?? defaultSettings.turnDetection)?.silenceMs ?? 0,
        vocabulary: vocabularyOf(settings),
      }),
    )
  }

  function append(event: JsonObject): void {
    const { audio } = event
    if (typeof audio !== 'string') {
      throw new RealtimeError('missing_required_parameter', '"audio" is required.', 'audio')
    }
    if (!base64.test(audio)) {
      throw new RealtimeError('invalid_value', '"audio" is not valid base64.', 'audio')
    }
    const bytes = Buffer.from(audio, 'base64')
    // An empty binary message would end the session.
    if (bytes.length === 0) return
    start()
    const { format } = settings
    const samples = format === 'pcm16' ? bytes : expandG711(bytes, lawOf[format])
    turns.onAudio((samples.length * 1_000) / 2 / rateOf(format))
    link.input(samples)
  }

  function divide(kind: 'commit' | 'clear'): void {
    if (turns.isFull()) {
      throw new RealtimeError('too_many_commits', 'Too many commits wait for their transcripts.')
    }
    const ms = turns.uncommittedMs()
    if (kind === 'clear' && started === null) {
      send({ type: 'input_audio_buffer.cleared' })
      return
    }
    if (kind === 'commit' && (started === null || ms < commitMsMin)) {
      throw new RealtimeError(
        'input_audio_buffer_commit_empty',
        `Error committing input audio buffer: buffer too small. Expected at least ${commitMsMin}ms of audio, but buffer only has ${ms.toFixed(2)}ms of audio.`,
      )
    }
    for (const event of kind === 'commit' ? turns.commit() : turns.clear()) send(event)
    link.input({ type: 'finalize', id: kind })
  }

  function onEvent(event: JsonObject): void {
    switch (event['type']) {
      case 'session.update':
        update(event, false)
        break
      case 'transcription_session.update':
        update(event, true)
        break
      case 'input_audio_buffer.append':
        append(event)
        break
      case 'input_audio_buffer.commit':
        divide('commit')
        break
      case 'input_audio_buffer.clear':
        divide('clear')
        break
      default:
        throw invalidValue('type', event['type'], clientEvents)
    }
  }

  return {
    textCharsMax: Math.ceil(Math.max(deps.frameBytesMax, audioBytesMax) / 3) * 4 + envelopeChars,
    idleMs: deps.idleMs,
    endsByClosing: true,

    open() {
      const principal = link.principal()
      const model = deps.parameters.get('model')
      const intent = deps.parameters.get('intent')
      if (intent !== null && intent !== 'transcription') throw refusal('intent', onlyTranscription)
      if (deps.parameters.has('call_id')) throw refusal('call_id', onlyTranscription)
      if (model !== null) {
        try {
          const at = 'model'
          settings = {
            ...settings,
            ...chooseModel(model, { choices: deps.choices, principal, at }),
          }
        } catch (error) {
          if (error instanceof RealtimeError) throw refusal('model', error.message)
          throw error
        }
      }
      send({ type: `${sessionType()}.created`, session: session() })
    },

    receive(message: string | Uint8Array) {
      let event: unknown = null
      try {
        event = typeof message === 'string' ? parseJson(message) : null
        if (!isRecord(event)) {
          throw new RealtimeError('invalid_json', 'A message must be a JSON object.')
        }
        onEvent(event)
      } catch (error) {
        if (!(error instanceof RealtimeError)) throw error
        const { code, message: fault, param } = error
        const id =
          isRecord(event) && typeof event['event_id'] === 'string' ? event['event_id'] : null
        const body = { type: 'invalid_request_error', code, message: fault, param, event_id: id }
        send({ type: 'error', error: body })
      }
    },

    render(frame: UnsentFrame): readonly string[] {
      switch (frame.type) {
        case 'speech_start':
          return turns.onSpeechStart(frame.at * 1_000).map(text)
        case 'transcript':
          return frame.is_final ? turns.onFinal(frame).map(text) : []
        case 'finalized':
          return turns.onFinalized().map(text)
        case 'warning':
          if (frame.code !== 'audio_lost') return []
          return [text(serverError({ code: frame.code, message: frame.message, param: null }))]
        case 'error': {
          const { code, message, param } = frame.error
          const isServerFault = frame.close_code >= 1_011
          const event = isServerFault
            ? serverError({ code, message, param })
            : requestError({
                code: code === 'unauthorized' ? 'invalid_api_key' : code,
                message,
                param,
              })
          return [...turns.fail({ code, message }), event].map(text)
        }
        default:
          return []
      }
    },

    closing: (code: number, reason: string) => ({ code, reason }),
  }
}

const onlyTranscription =
  'This gateway serves transcription sessions; connect with intent=transcription.'
const lawOf = { g711_ulaw: 'mulaw', g711_alaw: 'alaw' } as const

function refusal(param: string, message: string): SessionError {
  return new SessionError('invalid_parameter', message, { param })
}

function rateOf(format: RealtimeSettings['format']): number {
  return format === 'pcm16' ? pcmRateHz : g711RateHz
}

type Fault = { readonly code: string; readonly message: string; readonly param: string | null }

function serverError(fault: Fault): TurnEvent {
  return { type: 'error', error: { type: 'server_error', ...fault, event_id: null } }
}

function requestError(fault: Fault): TurnEvent {
  return { type: 'error', error: { type: 'invalid_request_error', ...fault, event_id: null } }
}

/** The engine of a session is chosen with its first audio. */
function requireChangeable(started: RealtimeSettings | null, next: RealtimeSettings): void {
  if (started === null) return
  const fixed = ['format', 'engineName', 'languageTag', 'prompt', 'keywords'] as const
  const isSame = fixed.every((name) => Bun.deepEquals(started[name], next[name]))
  const silenceOf = ({ turnDetection }: RealtimeSettings) => turnDetection?.silenceMs
  const silenceChanges = next.turnDetection !== null && silenceOf(started) !== silenceOf(next)
  if (isSame && !(silenceChanges && started.turnDetection !== null)) return
  throw new RealtimeError(
    'session_not_changeable',
    'Audio format, transcription and the duration of silence cannot change after the first audio; open another session.',
    'session',
  )
}
