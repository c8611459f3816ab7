import type { Engine, EngineEvent } from '#speech/engine.ts'

const sampleRateHz = 16_000
const utteranceMs = 600
const partialMs = 200

/**
 * An engine that says much more than it hears: with each 600 ms of audio one numbered final of so
 * many characters, and partials as long before it.
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
      let heardMs = 0
      let isOver = false
      const tell = (event: EngineEvent) =>
        queueMicrotask(() => {
          if (!isOver) listener(event)
        })
      const hear = (toMs: number) => {
        for (; heardMs + partialMs <= toMs; ) {
          heardMs += partialMs
          const utterance = Math.ceil(heardMs / utteranceMs)
          const startMs = (utterance - 1) * utteranceMs
          const span = { text: textOf(utterance), startMs, endMs: heardMs }
          if (heardMs % utteranceMs > 0) tell({ type: 'partial', ...span })
          else tell({ type: 'final', ...span, words: [], confidence: null, speechFinal: true })
        }
      }
      let samplesHeard = 0
      return {
        write(samples) {
          samplesHeard += samples.length
          const processedMs = (samplesHeard * 1000) / sampleRateHz
          hear(processedMs)
          tell({ type: 'progress', processedMs, estimated: false })
        },
        finalize: () => tell({ type: 'finalized' }),
        end: () => tell({ type: 'ended' }),
        abort() {
          isOver = true
        },
      }
    },
    close: async () => {},
  }
}
