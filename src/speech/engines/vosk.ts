import type { EngineConfig } from '#config/schema.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import type { Engine, Word } from '#speech/engine.ts'
import type { Log } from '#telemetry/log.ts'
import { bytesOf, createAudioFrames } from './audio-frames.ts'
import { createServerEngine, type ServerLine, type ServerProtocol } from './server-session.ts'
import { createVoskTimes } from './vosk-times.ts'
import { meanConfidence, readWords } from './words.ts'

const sampleRateHzUsual = 16_000
const frameMs = 200
/** Replies that may be outstanding; the caller's own limit is far below. */
const owedMax = 512
/** The server compares these byte by byte and takes any other text for audio. */
const eofCommand = '{"eof" : 1}'
const resetCommand = '{"reset" : 1}'

/** Servers of the Vosk project: one language each, and one reply for every frame of audio. */
export function createVoskEngine(config: EngineConfig, deps: { log: Log }): Engine {
  const sampleRateHz = config.sampleRateHz ?? sampleRateHzUsual
  return createServerEngine({
    config,
    log: deps.log,
    features: { partials: true, words: true, confidence: true, finalize: true },
    sampleRateHz,
    address: () => ({
      usualPath: '/',
      query: [],
      headers: config.key === undefined ? {} : { authorization: `Bearer ${config.key}` },
    }),
    protocol: (line) => createVoskProtocol(line, sampleRateHz),
  })
}

/** What a reply is owed for, and how much audio was sent by then. */
type Owed = { readonly asked: 'frame' | 'reset' | 'eof'; readonly untilMs: number }

function createVoskProtocol(line: ServerLine, sampleRateHz: number): ServerProtocol {
  const owed: Owed[] = []
  const times = createVoskTimes()
  let sentMs = 0
  let finalizedMs = 0
  let partialText = ''

  const owe = (asked: Owed['asked']) => {
    owed.push({ asked, untilMs: sentMs })
    if (owed.length > owedMax) line.fail('broken', 'it does not answer')
  }
  const frames = createAudioFrames({
    sampleRateHz,
    frameMs,
    send(samples) {
      sentMs += (samples.length * 1000) / sampleRateHz
      line.sendBytes(bytesOf(samples))
      owe('frame')
    },
  })
  const takePartial = (text: string) => {
    if (text === partialText) return
    partialText = text
    if (text === '') line.emit({ type: 'utterance-dropped' })
    else line.emit({ type: 'partial', text, startMs: null, endMs: null })
  }
  const takeFinal = (result: JsonObject, { asked, untilMs }: Owed) => {
    partialText = ''
    const text = typeof result['text'] === 'string' ? result['text'].trim() : ''
    if (text === '') return line.emit({ type: 'utterance-dropped' })
    const words: readonly Word[] = times.place(readWords(result['result'], 'conf'), untilMs)
    line.emit({
      type: 'final',
      text,
      startMs: words[0]?.startMs ?? null,
      endMs: words.at(-1)?.endMs ?? null,
      words,
      confidence: meanConfidence(words),
      speechFinal: asked !== 'reset',
    })
  }
  return {
    opened() {
      // A `phrase_list` would be all that is understood, and a `model` is loaded anew each time.
      line.sendJson({ config: { sample_rate: sampleRateHz, words: true, max_alternatives: 0 } })
      line.ready()
    },
    frame(reply) {
      const reason = owed.shift()
      if (reason === undefined) return line.fail('broken', 'a reply to nothing')
      const result = finalIn(reply)
      if (result !== null) takeFinal(result, reason)
      else if (typeof reply['partial'] === 'string') takePartial(reply['partial'].trim())
      else return line.fail('broken', 'a reply with neither a partial nor a text')
      const processedMs = Math.round(reason.untilMs)
      line.emit({ type: 'progress', processedMs, estimated: false })
      if (reason.asked === 'eof') return line.ended()
      if (reason.asked !== 'reset') return
      times.reset(reason.untilMs)
      line.emit({ type: 'finalized' })
    },
    write: (samples) => frames.write(samples),
    finalize() {
      frames.flush()
      if (sentMs === finalizedMs) return line.soon(() => line.emit({ type: 'finalized' }))
      finalizedMs = sentMs
      line.sendText(resetCommand)
      owe('reset')
    },
    end() {
      frames.flush()
      line.sendText(eofCommand)
      owe('eof')
    },
    isAnswered: () => false,
    stop: () => frames.stop(),
  }
}

/** The final in a reply; of alternatives the first, which is the likeliest. */
function finalIn(reply: JsonObject): JsonObject | null {
  if (typeof reply['text'] === 'string') return reply
  const { alternatives } = reply
  if (!Array.isArray(alternatives)) return null
  const likeliest: unknown = alternatives[0]
  return isRecord(likeliest) ? likeliest : {}
}
