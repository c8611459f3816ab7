import type { EngineConfig } from '#config/schema.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import type { Engine, Word } from '#speech/engine.ts'
import type { Log } from '#telemetry/log.ts'
import type { EngineKind } from './engine-kind.ts'
import { AudioFramer, bytesOf } from './server-audio.ts'
import { createServerEngine, type ServerProtocol, type ServerSession } from './server-session.ts'
import { meanConfidence, readWords, shiftWords } from './words.ts'

const defaultSampleRateHz = 16_000
const frameMs = 200
/** Outstanding replies; the caller's own limit is far lower. */
const pendingMax = 512
/** The server compares these byte by byte and treats any other text as audio. */
const eofCommand = '{"eof" : 1}'
const resetCommand = '{"reset" : 1}'
/** Word times are rounded to 30 ms and may exceed the frame in which they were recognised. */
const timeToleranceMs = 200

/** Servers of the Vosk project: one language each, and one reply to each frame of audio. */
export function createVoskEngine(config: EngineConfig, deps: { log: Log }): Engine {
  const sampleRateHz = config.sampleRateHz ?? defaultSampleRateHz
  return createServerEngine({
    config,
    log: deps.log,
    features: { partials: true, words: true, confidence: true, finalize: true },
    sampleRateHz,
    address: () => ({
      defaultPath: '/',
      query: [],
      headers: config.key === undefined ? {} : { authorization: `Bearer ${config.key}` },
    }),
    protocol: (session) => new VoskProtocol(session, sampleRateHz),
  })
}

export const vosk: EngineKind = { location: 'url', create: createVoskEngine }

/** A message that the server has not replied to, and how much audio was sent by then. */
type PendingReply = { readonly to: 'frame' | 'reset' | 'eof'; readonly untilMs: number }

class VoskProtocol implements ServerProtocol {
  readonly #session: ServerSession
  readonly #sampleRateHz: number
  readonly #framer: AudioFramer
  readonly #pending: PendingReply[] = []
  #sentMs = 0
  #finalizedMs = 0
  #partialText = ''
  #resetMs = 0
  /**
   * Whether word times restart at a reset, as on older servers; null until the first words whose
   * times would be impossible otherwise.
   */
  #timesRestart: boolean | null = null

  constructor(session: ServerSession, sampleRateHz: number) {
    this.#session = session
    this.#sampleRateHz = sampleRateHz
    this.#framer = new AudioFramer(sampleRateHz, frameMs, (samples) => this.#send(samples))
  }

  opened(): void {
    // `phrase_list` would restrict the vocabulary, and `model` reloads the model for each session.
    const sample_rate = this.#sampleRateHz
    this.#session.sendJson({ config: { sample_rate, words: true, max_alternatives: 0 } })
    this.#session.ready()
  }

  received(reply: JsonObject) {
    const session = this.#session
    const pending = this.#pending.shift()
    if (pending === undefined) return session.fail('broken', 'unexpected reply')
    const result = finalIn(reply)
    if (result !== null) this.#onFinal(result, pending)
    else if (typeof reply['partial'] === 'string') this.#onPartial(reply['partial'].trim())
    else return session.fail('broken', 'a reply with neither a partial nor a text')
    const processedMs = Math.round(pending.untilMs)
    session.emit({ type: 'progress', processedMs, estimated: false })
    if (pending.to === 'eof') return session.ended()
    if (pending.to !== 'reset') return
    this.#resetMs = pending.untilMs
    session.emit({ type: 'finalized' })
  }

  write(samples: Int16Array): void {
    this.#framer.write(samples)
  }

  finalize(): void {
    const session = this.#session
    this.#framer.flush()
    if (this.#sentMs === this.#finalizedMs) {
      session.defer(() => session.emit({ type: 'finalized' }))
    } else {
      this.#finalizedMs = this.#sentMs
      session.send(resetCommand)
      this.#expectReply('reset')
    }
  }

  end(): void {
    this.#framer.flush()
    this.#session.send(eofCommand)
    this.#expectReply('eof')
  }

  stop(): void {
    this.#framer.stop()
  }

  #send(samples: Int16Array): void {
    this.#sentMs += (samples.length * 1000) / this.#sampleRateHz
    this.#session.send(bytesOf(samples))
    this.#expectReply('frame')
  }

  #expectReply(to: PendingReply['to']): void {
    this.#pending.push({ to, untilMs: this.#sentMs })
    if (this.#pending.length > pendingMax) this.#session.fail('broken', 'it does not reply')
  }

  #onPartial(text: string): void {
    if (text === this.#partialText) return
    this.#partialText = text
    if (text === '') this.#session.emit({ type: 'utterance-dropped' })
    else this.#session.emit({ type: 'partial', text, startMs: null, endMs: null })
  }

  #onFinal(result: JsonObject, { to, untilMs }: PendingReply) {
    this.#partialText = ''
    const text = typeof result['text'] === 'string' ? result['text'].trim() : ''
    if (text === '') return this.#session.emit({ type: 'utterance-dropped' })
    const words = this.#onTimeline(readWords(result['result'], 'conf'), untilMs)
    this.#session.emit({
      type: 'final',
      text,
      startMs: words[0]?.startMs ?? null,
      endMs: words.at(-1)?.endMs ?? null,
      words,
      confidence: meanConfidence(words),
      speechFinal: to !== 'reset',
    })
  }

  /** Moves the words of a reply, to the audio before `untilMs`, to the session's timeline. */
  #onTimeline(words: readonly Word[], untilMs: number): readonly Word[] {
    const first = words[0]
    const last = words.at(-1)
    const resetMs = this.#resetMs
    if (resetMs === 0 || first === undefined || last === undefined) return words
    if (this.#timesRestart === null) {
      if (first.startMs < resetMs - timeToleranceMs) this.#timesRestart = true
      else if (last.endMs + resetMs > untilMs + timeToleranceMs) this.#timesRestart = false
    }
    return this.#timesRestart === true ? shiftWords(words, resetMs) : words
  }
}

/** The final in a reply; of alternatives the first, which is the most likely. */
function finalIn(reply: JsonObject): JsonObject | null {
  if (typeof reply['text'] === 'string') return reply
  const { alternatives } = reply
  if (!Array.isArray(alternatives)) return null
  const best: unknown = alternatives[0]
  return isRecord(best) ? best : {}
}
