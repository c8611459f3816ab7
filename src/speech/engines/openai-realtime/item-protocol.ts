import { isRecord, type JsonObject } from '#lib/json.ts'
import { createAudioFrames } from '#speech/engines/audio-frames.ts'
import { createPacedProgress } from '#speech/engines/paced-progress.ts'
import type { ServerLine, ServerProtocol } from '#speech/engines/server-session.ts'
import { readWords } from '#speech/engines/words.ts'
import type { RealtimeSettings } from './engine.ts'
import { createItemOrder, type ItemCommit } from './item-order.ts'
import { createPauseFinder } from './pause-finder.ts'
import {
  appendFrame,
  appendMs,
  commitMsMin,
  kindOfFatal,
  type RealtimeError,
  readError,
} from './realtime-frames.ts'
import { sessionUpdate } from './session-update.ts'

/**
 * The dialects of OpenAI's own service, the present one and the one before: audio is not
 * acknowledged, each utterance is an item, and the server finds the pauses. Where its model refuses
 * to look for them, they are found here and committed.
 */
export function createItemProtocol(line: ServerLine, settings: RealtimeSettings): ServerProtocol {
  return new ItemProtocol(line, settings)
}

/** Commits without an answer. */
const commitsMax = 64
/** Some servers never answer a commit that came together with a pause that they found. */
const commitAnswerMs = 2_000
/** One item may fail; so many in a row are a server that does not work. */
const failuresMax = 3

class ItemProtocol implements ServerProtocol {
  readonly #line: ServerLine
  readonly #settings: RealtimeSettings
  readonly #frames
  readonly #progress
  readonly #pauses
  readonly #order
  #isReady = false
  #findsTurns = true
  #sentMs = 0
  /** Where what the server has not committed begins, at the latest. */
  #bufferedFromMs = 0
  #commits: (ItemCommit & { atMs: number })[] = []
  #commitTimer: Timer | null = null
  #failures = 0
  /** The items that `finalize` waits for; null where it is not asked. */
  #finalizing: Set<string> | null = null
  #isEnding = false

  constructor(line: ServerLine, settings: RealtimeSettings) {
    const { config, sampleRateHz, options } = settings
    this.#line = line
    this.#settings = settings
    this.#pauses = createPauseFinder(sampleRateHz, options.endpointingMs)
    this.#order = createItemOrder({
      emit: (event) => line.emit(event),
      overflowed: () => line.fail('broken', 'an item was never answered'),
    })
    this.#progress = createPacedProgress(line, config.paceMax)
    this.#frames = createAudioFrames({
      sampleRateHz,
      frameMs: appendMs,
      send: (samples) => this.#append(samples),
    })
  }

  opened(): void {
    this.#line.sendJson(sessionUpdate(this.#settings, this.#findsTurns))
  }

  frame(frame: JsonObject): void {
    const id = typeof frame['item_id'] === 'string' ? frame['item_id'] : ''
    switch (frame['type']) {
      case 'session.updated':
      case 'transcription_session.updated':
        this.#isReady = true
        this.#line.ready()
        break
      case 'input_audio_buffer.speech_started':
        this.#speechStarted(id, readMs(frame['audio_start_ms']))
        break
      case 'input_audio_buffer.speech_stopped':
        this.#speechStopped(id, readMs(frame['audio_end_ms']))
        break
      case 'input_audio_buffer.committed':
        this.#committed(id, frame['previous_item_id'])
        break
      case 'conversation.item.input_audio_transcription.delta':
        this.#order.grew(id, frame['delta'])
        break
      case 'conversation.item.input_audio_transcription.completed':
        this.#completed(id, frame)
        break
      case 'conversation.item.input_audio_transcription.failed':
        this.#itemFailed(id, readError(frame))
        break
      case 'error':
        this.#failed(readError(frame))
        break
    }
  }

  write(samples: Int16Array): void {
    this.#frames.write(samples)
  }

  finalize(): void {
    this.#commitRest(false)
    this.#finalizing = new Set(this.#order.awaited())
    this.#line.soon(() => this.#answer())
  }

  end(): void {
    this.#commitRest(true)
    this.#isEnding = true
    this.#line.soon(() => this.#answer())
  }

  isAnswered(): boolean {
    return false
  }

  stop(): void {
    this.#frames.stop()
    this.#progress.stop()
    if (this.#commitTimer !== null) clearTimeout(this.#commitTimer)
  }

  #append(samples: Int16Array): void {
    this.#line.sendText(appendFrame(samples))
    this.#sentMs += (samples.length * 1000) / this.#settings.sampleRateHz
    this.#progress.sent(this.#sentMs)
    const reason = this.#pauses.push(samples)
    if (reason !== null && !this.#findsTurns) this.#commit(reason === 'pause')
  }

  /** Closes what was said and not committed, if there is something in it. */
  #commitRest(inPause: boolean): void {
    this.#frames.flush()
    if (this.#sentMs - this.#bufferedFromMs < commitMsMin) return
    const speech = this.#pauses.speech()
    const isSaid = speech !== null && speech.endMs > this.#bufferedFromMs
    // Models make words up where they are given silence.
    if (this.#findsTurns && !isSaid && !this.#order.isSpeechOpen()) return
    this.#commit(inPause)
    this.#commitTimer ??= setTimeout(() => {
      this.#commitTimer = null
      this.#commits = []
      this.#answer()
    }, commitAnswerMs)
  }

  #commit(inPause: boolean): void {
    const { startMs = null, endMs = null } = this.#pauses.cut() ?? {}
    this.#commits.push({ startMs, endMs, inPause, atMs: this.#sentMs })
    this.#bufferedFromMs = this.#sentMs
    this.#line.sendJson({ type: 'input_audio_buffer.commit' })
    if (this.#commits.length > commitsMax) this.#line.fail('broken', 'it does not answer commits')
  }

  #speechStarted(id: string, atMs: number | null): void {
    this.#order.started(id, atMs)
    if (atMs !== null) this.#line.emit({ type: 'speech-start', atMs })
  }

  #speechStopped(id: string, atMs: number | null): void {
    this.#order.stopped(id, atMs)
    if (atMs !== null) this.#progress.known(atMs)
  }

  #committed(id: string, previousId: unknown): void {
    if (id === '') this.#line.fail('broken', 'an item has no id')
    const isByServer = this.#order.hasStopped(id)
    const commit = isByServer ? undefined : this.#commits.shift()
    if (isByServer) {
      const pauseMs = this.#settings.options.endpointingMs
      const untilMs = (this.#order.endOf(id) ?? this.#sentMs) + pauseMs
      this.#bufferedFromMs = Math.max(this.#bufferedFromMs, Math.min(untilMs, this.#sentMs))
    }
    // A commit that meets a pause may close another item than the one that it was meant for.
    if (commit !== undefined || this.#commits.length > 0) this.#finalizing?.add(id)
    this.#order.committed(id, typeof previousId === 'string' ? previousId : null, commit ?? null)
    if (commit !== undefined) this.#progress.known(commit.atMs)
    this.#answer()
  }

  #completed(id: string, frame: JsonObject): void {
    if (id === '') this.#line.fail('broken', 'an item has no id')
    this.#failures = 0
    this.#order.settled(id, {
      text: typeof frame['transcript'] === 'string' ? frame['transcript'].trim() : '',
      words: readWords(frame['words'], 'confidence'),
      confidence: confidenceOf(frame['logprobs']),
    })
    this.#answer()
  }

  #itemFailed(id: string, { code, message }: RealtimeError): void {
    this.#failures += 1
    const detail = `${code} ${message}`
    this.#line.note('a speech server could not transcribe an utterance', detail)
    if (this.#failures >= failuresMax) this.#line.fail('broken', `items fail: ${detail}`)
    this.#order.settled(id, { text: '', words: [], confidence: null })
    this.#answer()
  }

  #failed(error: RealtimeError): void {
    const detail = `the server says: ${error.code} ${error.message}`
    const kind = kindOfFatal(error)
    if (!this.#isReady && this.#findsTurns && isAboutTurns(error)) {
      this.#findsTurns = false
      this.opened()
    } else if (!this.#isReady || kind !== null) {
      this.#line.fail(kind ?? 'refused', detail)
    } else if (isAboutEmptyCommit(error) && this.#commits.length > 0) {
      this.#commits.shift()
      this.#answer()
    } else {
      this.#line.note('a speech server complains and goes on', detail)
    }
  }

  /** Answers what was asked for, once all items that it covers were told. */
  #answer(): void {
    if (this.#commits.length > 0) return
    if (this.#commitTimer !== null) clearTimeout(this.#commitTimer)
    this.#commitTimer = null
    const awaited = this.#order.awaited()
    if (this.#finalizing?.isDisjointFrom(awaited)) {
      this.#finalizing = null
      this.#line.emit({ type: 'finalized' })
    }
    if (!this.#isEnding || awaited.size > 0 || this.#finalizing !== null) return
    this.#progress.known(this.#sentMs)
    this.#line.ended()
  }
}

function readMs(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? Math.round(value) : null
}

/** The mean probability of the tokens, where the server was configured to tell it. */
function confidenceOf(logprobs: unknown): number | null {
  if (!Array.isArray(logprobs) || logprobs.length === 0) return null
  const each = logprobs.map((token: unknown) => (isRecord(token) ? Number(token['logprob']) : 0))
  const mean = each.reduce((sum, logprob) => sum + logprob, 0) / each.length
  return Number.isFinite(mean) && mean <= 0 ? Math.exp(mean) : null
}

function isAboutEmptyCommit({ code, message }: RealtimeError): boolean {
  return code === 'input_audio_buffer_commit_empty' || message.includes('buffer too small')
}

function isAboutTurns({ param, message }: RealtimeError): boolean {
  return param.includes('turn_detection') || /turn.detection/i.test(message)
}
