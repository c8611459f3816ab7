import { isRecord, type JsonObject } from '#lib/json.ts'
import type { Word } from '#speech/engine.ts'
import { type ServerProtocol, type ServerSession, serverKind } from './server-session.ts'
import { finalEvent, meanConfidence, readText, readWords, shiftWords } from './words.ts'

/** Outstanding replies; the caller's own limit is far lower. */
const pendingMax = 512
/** The server compares these byte by byte and treats any other text as audio. */
const eofCommand = '{"eof" : 1}'
const resetCommand = '{"reset" : 1}'
/** Word times are rounded to 30 ms and may exceed the frame in which they were recognised. */
const timeToleranceMs = 200

/** Servers of the Vosk project: one language each, and one reply to each frame of audio. */
export const vosk = serverKind(() => ({
  features: { partials: true, words: true, confidence: true, finalize: true },
  frameMs: 200,
  reportsProgress: true,
  path: '/',
  authorization: 'Bearer',
  protocol: (session) => new VoskProtocol(session),
}))

/** A message that the server has not replied to, and how much audio was sent by then. */
type PendingReply = { readonly to: 'frame' | 'reset' | 'eof'; readonly untilMs: number }

class VoskProtocol implements ServerProtocol {
  readonly #session: ServerSession
  readonly #pending: PendingReply[] = []
  #finalizedMs = 0
  #partialText = ''
  #resetMs = 0
  /**
   * Whether word times restart at a reset, as on older servers; null until the first words whose
   * times would be impossible otherwise.
   */
  #timesRestart: boolean | null = null

  constructor(session: ServerSession) {
    this.#session = session
  }

  opened(): void {
    // `phrase_list` would restrict the vocabulary, and `model` reloads the model for each session.
    const sample_rate = this.#session.sampleRateHz
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
    session.processed(pending.untilMs)
    if (pending.to === 'eof') return session.ended()
    if (pending.to !== 'reset') return
    this.#resetMs = pending.untilMs
    session.emit({ type: 'finalized' })
  }

  send(samples: Int16Array): void {
    this.#session.sendAudio(samples)
    this.#expectReply('frame')
  }

  finalize(): void {
    const session = this.#session
    if (session.sentMs === this.#finalizedMs) {
      session.defer(() => session.emit({ type: 'finalized' }))
    } else {
      this.#finalizedMs = session.sentMs
      session.send(resetCommand)
      this.#expectReply('reset')
    }
  }

  end(): void {
    this.#session.send(eofCommand)
    this.#expectReply('eof')
  }

  #expectReply(to: PendingReply['to']): void {
    this.#pending.push({ to, untilMs: this.#session.sentMs })
    if (this.#pending.length > pendingMax) this.#session.fail('broken', 'it does not reply')
  }

  #onPartial(text: string): void {
    if (text === this.#partialText) return
    this.#partialText = text
    if (text === '') this.#session.emit({ type: 'utterance-dropped' })
    else this.#session.emit({ type: 'partial', text, startMs: null, endMs: null })
  }

  #onFinal(result: JsonObject, { to, untilMs }: PendingReply): void {
    this.#partialText = ''
    const words = this.#onTimeline(readWords(result['result'], 'conf'), untilMs)
    this.#session.emit(
      finalEvent({
        text: readText(result['text']),
        words,
        confidence: meanConfidence(words),
        speechFinal: to !== 'reset',
      }),
    )
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
