import type { Engine, EngineEvent } from '#speech/engine.ts'

const sampleRateHz = 16_000
const utteranceMs = 600
const partialMs = 200

/**
 * An engine with very long results: for each 600 ms of audio one numbered final of `textChars`
 * characters, preceded by partials of the same length.
 */
export function createTalkativeEngine(textChars: number): Engine {
  const textOf = (utterance: number) => `${utterance} `.padEnd(textChars, 'x')
  return {
    name: 'talkative',
    languages: ['en'],
    sampleRateHz,
    features: { partials: true, words: false, confidence: false, finalize: false },
    limits: { sessionsMax: 100, sessionMsMax: 14_400_000 },
    async open({ listener }) {
      let emittedMs = 0
      let isOver = false
      const emit = (event: EngineEvent) =>
        queueMicrotask(() => {
          if (!isOver) listener(event)
        })
      const emitUntil = (toMs: number) => {
        for (; emittedMs + partialMs <= toMs; ) {
          emittedMs += partialMs
          const utterance = Math.ceil(emittedMs / utteranceMs)
          const startMs = (utterance - 1) * utteranceMs
          const span = { text: textOf(utterance), startMs, endMs: emittedMs }
          if (emittedMs % utteranceMs > 0) emit({ type: 'partial', ...span })
          else emit({ type: 'final', ...span, words: [], confidence: null, speechFinal: true })
        }
      }
      let samplesReceived = 0
      return {
        write(samples) {
          samplesReceived += samples.length
          const processedMs = (samplesReceived * 1000) / sampleRateHz
          emitUntil(processedMs)
          emit({ type: 'progress', processedMs, estimated: false })
        },
        finalize: () => emit({ type: 'finalized' }),
        end: () => emit({ type: 'ended' }),
        abort() {
          isOver = true
        },
      }
    },
    close: async () => {},
  }
}
