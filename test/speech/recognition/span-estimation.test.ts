import { expect, test } from 'bun:test'
import { clampWord, estimateSpan, SpeechSpans } from '#speech/recognition/speech-activity.ts'

const bounds = { fromMs: 1_000, processedMs: 6_000, sentMs: 7_000, endpointingMs: 600 }
const noTimes = { startMs: null, endMs: null }

test('the times of the engine or of its words are used', () => {
  const speech = speechAt([2_000, 3_000])
  expect(estimateSpan({ startMs: 2_100, endMs: 2_900 }, bounds, speech)).toEqual({
    startMs: 2_100,
    endMs: 2_900,
    isEstimated: false,
  })
  const words = [
    { word: 'so', startMs: 2_200, endMs: 2_300, confidence: null },
    { word: 'be it', startMs: 2_300, endMs: 2_800, confidence: null },
  ]
  expect(estimateSpan({ ...noTimes, words }, bounds, speech)).toMatchObject({
    startMs: 2_200,
    endMs: 2_800,
  })
})

test('a text without times spans the first speech up to its first real pause', () => {
  const speech = speechAt([2_000, 2_500], [2_900, 3_300], [4_200, 4_400])
  expect(estimateSpan(noTimes, bounds, speech)).toEqual({
    startMs: 2_000,
    endMs: 3_300,
    isEstimated: true,
  })
  expect(estimateSpan({ startMs: 3_500, endMs: null }, bounds, speech)).toMatchObject({
    startMs: 3_500,
    endMs: 4_400,
  })
})

test('speech in progress ends at the processed position', () => {
  expect(estimateSpan(noTimes, bounds, speechAt([5_000, 6_800]))).toMatchObject({ endMs: 6_000 })
})

test('without detected speech a text spans from the previous final to the processed position', () => {
  expect(estimateSpan(noTimes, bounds, speechAt())).toMatchObject({ startMs: 1_000, endMs: 6_000 })
})

test('a text neither overlaps the previous final nor exceeds the sent audio', () => {
  const speech = speechAt()
  expect(estimateSpan({ startMs: 200, endMs: 9_000 }, bounds, speech)).toMatchObject({
    startMs: 1_000,
    endMs: 7_000,
  })
  expect(estimateSpan({ startMs: 200, endMs: 700 }, bounds, speech)).toMatchObject({
    startMs: 1_000,
    endMs: 1_000,
  })
  const word = { word: 'late', startMs: 500, endMs: 1_700, confidence: 0.5 }
  expect(clampWord(word, 1_000, 1_500)).toEqual({ ...word, startMs: 1_000, endMs: 1_500 })
})

function speechAt(...spans: (readonly [number, number])[]) {
  const speech = new SpeechSpans()
  for (const [startMs, endMs] of spans) speech.add({ startMs, endMs })
  return speech
}
