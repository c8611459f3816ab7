import { isRecord, type JsonObject } from '#lib/json.ts'
import type { ServerProtocol, ServerSession } from '#speech/engines/server-session.ts'
import { readText, readWords } from '#speech/engines/words.ts'
import { type ItemCommit, ItemOrder } from './item-order.ts'
import {
  appendFrame,
  commitMsMin,
  fatalCodes,
  PauseFinder,
  type RealtimeError,
  readError,
} from './realtime-audio.ts'

/** Unanswered commits. */
const commitsMax = 64
/** Some servers never answer a commit that coincides with a pause that they detected. */
const commitAnswerMs = 2_000
/** One item may fail; this many consecutive failures mean that the server does not work. */
const failuresMax = 3
const promptCharsMax = 1_000

/**
 * The dialects of OpenAI's service, `ga` and `beta`: audio is not acknowledged, each utterance is an
 * item, and the server detects pauses. If its model does not support that, pauses are detected and
 * committed here.
 */
export class ItemProtocol implements ServerProtocol {
  readonly #session: ServerSession
  readonly #pauses: PauseFinder
  readonly #order: ItemOrder
  #isReady = false
  #serverDetectsPauses = true
  /** The latest position at which the server's uncommitted audio can start. */
  #uncommittedFromMs = 0
  #commits: (ItemCommit & { atMs: number })[] = []
  /** Since the last commit the server has detected a pause. */
  #coincidesWithPause = false
  #commitTimer: Timer | null = null
  #failures = 0
  /** The items that `finalize` waits for; null: not requested. */
  #finalizing: Set<string> | null = null
  #isEnding = false

  constructor(session: ServerSession) {
    this.#session = session
    this.#pauses = new PauseFinder(session.sampleRateHz, session.options.endpointingMs)
    this.#order = new ItemOrder(session)
  }

  opened(): void {
    this.#session.sendJson(sessionUpdate(this.#session, this.#serverDetectsPauses))
  }

  received(frame: JsonObject): void {
    const id = typeof frame['item_id'] === 'string' ? frame['item_id'] : ''
    switch (frame['type']) {
      case 'session.updated':
      case 'transcription_session.updated':
        this.#isReady = true
        this.#session.ready()
        break
      case 'input_audio_buffer.speech_started': {
        const atMs = readMs(frame['audio_start_ms'])
        this.#order.update(id, { startMs: atMs })
        if (atMs !== null) this.#session.emit({ type: 'speech-start', atMs })
        break
      }
      case 'input_audio_buffer.speech_stopped': {
        const atMs = readMs(frame['audio_end_ms'])
        this.#order.update(id, { isStopped: true, endMs: atMs })
        if (atMs !== null) this.#session.processed(atMs)
        break
      }
      case 'input_audio_buffer.committed':
        this.#onCommitted(id, frame['previous_item_id'])
        break
      case 'conversation.item.input_audio_transcription.delta':
        this.#order.textGrew(id, frame['delta'])
        break
      case 'conversation.item.input_audio_transcription.completed':
        this.#onCompleted(id, frame)
        break
      case 'conversation.item.input_audio_transcription.failed':
        this.#onItemFailed(id, readError(frame))
        break
      case 'error':
        this.#onError(readError(frame))
        break
    }
    if (this.#finalizing !== null || this.#isEnding) this.#awaitCommits()
  }

  send(samples: Int16Array): void {
    this.#session.sendAudio(samples, appendFrame(samples))
    const reason = this.#pauses.push(samples)
    if (reason !== null && !this.#serverDetectsPauses) this.#commit(reason === 'pause')
  }

  finalize(): void {
    this.#commitRest(false)
    this.#finalizing = new Set(this.#order.outstanding())
    this.#session.defer(() => this.#respond())
  }

  end(): void {
    this.#commitRest(true)
    this.#isEnding = true
    this.#session.defer(() => this.#respond())
  }

  stop(): void {
    this.#coincidesWithPause = false
    this.#stopCommitTimer()
  }

  /** Commits the remaining audio if it contains speech. */
  #commitRest(isInPause: boolean): void {
    if (this.#session.sentMs - this.#uncommittedFromMs < commitMsMin) return
    const speech = this.#pauses.speech()
    const hasSpeech = speech !== null && speech.endMs > this.#uncommittedFromMs
    // Models hallucinate text for silence.
    if (this.#serverDetectsPauses && !hasSpeech && !this.#order.isSpeechOpen()) return
    this.#commit(isInPause)
  }

  /** Waits from now on for answers to commits, if they may never come; otherwise it is only slow. */
  #awaitCommits(): void {
    this.#stopCommitTimer()
    if (!this.#coincidesWithPause || this.#order.outstanding().size > 0) return
    this.#commitTimer = setTimeout(() => {
      this.#commits = []
      this.#coincidesWithPause = false
      this.#respond()
    }, commitAnswerMs)
  }

  #commit(isInPause: boolean): void {
    const { startMs = null, endMs = null } = this.#pauses.cut() ?? {}
    const { sentMs: atMs } = this.#session
    this.#commits.push({ startMs, endMs, isInPause, atMs })
    this.#coincidesWithPause = false
    this.#uncommittedFromMs = atMs
    this.#session.sendJson({ type: 'input_audio_buffer.commit' })
    if (this.#commits.length <= commitsMax) return
    this.#session.fail('broken', 'the server does not answer commits')
  }

  #onCommitted(id: string, previousId: unknown): void {
    if (id === '') this.#session.fail('broken', 'an item has no id')
    const { sentMs, options } = this.#session
    const item = this.#order.find(id)
    const commit = item?.isStopped ? undefined : this.#commits.shift()
    if (item?.isStopped) {
      const untilMs = Math.min((item.endMs ?? sentMs) + options.endpointingMs, sentMs)
      this.#uncommittedFromMs = Math.max(this.#uncommittedFromMs, untilMs)
      this.#coincidesWithPause = this.#commits.length > 0
    }
    // A commit that coincides with a detected pause may close another item than intended.
    if (commit !== undefined || this.#commits.length > 0) this.#finalizing?.add(id)
    this.#order.committed(id, typeof previousId === 'string' ? previousId : null, commit ?? null)
    if (commit !== undefined) this.#session.processed(commit.atMs)
    this.#respond()
  }

  #onCompleted(id: string, frame: JsonObject): void {
    if (id === '') this.#session.fail('broken', 'an item has no id')
    this.#failures = 0
    const text = readText(frame['transcript'])
    const words = readWords(frame['words'], 'confidence')
    const confidence = readLogprobs(frame['logprobs'])
    this.#order.update(id, { result: { text, words, confidence } })
    this.#respond()
  }

  #onItemFailed(id: string, { code, message }: RealtimeError): void {
    this.#failures += 1
    const detail = `${code} ${message}`
    this.#session.warn('speech server failed to transcribe an utterance', detail)
    if (this.#failures >= failuresMax) this.#session.fail('broken', `items fail: ${detail}`)
    this.#order.update(id, { result: { text: '', words: [], confidence: null } })
    this.#respond()
  }

  #onError(error: RealtimeError): void {
    const detail = `server error: ${error.code} ${error.message}`
    const kind = fatalCodes[error.code] ?? null
    if (!this.#isReady && this.#serverDetectsPauses && isAboutPauses(error)) {
      this.#serverDetectsPauses = false
      this.opened()
    } else if (!this.#isReady || kind !== null) {
      this.#session.fail(kind ?? 'refused', detail)
    } else if (isAboutEmptyCommit(error) && this.#commits.length > 0) {
      this.#commits.shift()
      this.#respond()
    } else {
      this.#session.warn('speech server error, continuing', detail)
    }
  }

  /** Answers outstanding requests once all items that they cover were emitted. */
  #respond(): void {
    if (this.#commits.length > 0) return
    this.#stopCommitTimer()
    const outstanding = this.#order.outstanding()
    if (this.#finalizing?.isDisjointFrom(outstanding)) {
      this.#finalizing = null
      this.#session.emit({ type: 'finalized' })
    }
    if (!this.#isEnding || outstanding.size > 0 || this.#finalizing !== null) return
    this.#session.processed(this.#session.sentMs)
    this.#session.ended()
  }

  #stopCommitTimer(): void {
    if (this.#commitTimer !== null) clearTimeout(this.#commitTimer)
    this.#commitTimer = null
  }
}

function sessionUpdate(session: ServerSession, serverDetectsPauses: boolean): JsonObject {
  const { config, sampleRateHz, options } = session
  const { language, vocabulary, endpointingMs } = options
  const prompt = vocabulary.join(', ').slice(0, promptCharsMax)
  const transcription = {
    ...(config.model === undefined ? {} : { model: config.model }),
    language,
    ...(prompt === '' ? {} : { prompt }),
  }
  const turn_detection = serverDetectsPauses
    ? { type: 'server_vad', silence_duration_ms: endpointingMs }
    : null
  if (config.dialect === 'beta') {
    return {
      type: 'transcription_session.update',
      session: {
        input_audio_format: 'pcm16',
        input_audio_transcription: transcription,
        turn_detection,
      },
    }
  }
  const input = { format: { type: 'audio/pcm', rate: sampleRateHz }, transcription, turn_detection }
  return { type: 'session.update', session: { type: 'transcription', audio: { input } } }
}

function readMs(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? Math.round(value) : null
}

/** The mean probability of the tokens, if the server is configured to return it. */
function readLogprobs(logprobs: unknown): number | null {
  if (!Array.isArray(logprobs) || logprobs.length === 0) return null
  const each = logprobs.map((token: unknown) => (isRecord(token) ? Number(token['logprob']) : 0))
  const mean = each.reduce((sum, logprob) => sum + logprob, 0) / each.length
  return Number.isFinite(mean) && mean <= 0 ? Math.exp(mean) : null
}

function isAboutEmptyCommit({ code, message }: RealtimeError): boolean {
  return code === 'input_audio_buffer_commit_empty' || message.includes('buffer too small')
}

function isAboutPauses({ param, message }: RealtimeError): boolean {
  return param.includes('turn_detection') || /turn.detection/i.test(message)
}
