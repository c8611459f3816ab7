import { expect, test } from 'bun:test'
import { clampWord, placeSpan } from '#speech/recognition/reckoning.ts'
import { createSpeechMap } from '#speech/recognition/speech-map.ts'

const bounds = { fromMs: 1_000, processedMs: 6_000, writtenMs: 7_000, endpointingMs: 600 }
const untold = { startMs: null, endMs: null }

test('what the engine says holds, or what its words say', () => {
  const speech = hear([2_000, 3_000])
  expect(placeSpan({ startMs: 2_100, endMs: 2_900 }, bounds, speech)).toEqual({
    startMs: 2_100,
    endMs: 2_900,
    isReckoned: false,
  })
  const words = [
    { word: 'so', startMs: 2_200, endMs: 2_300, confidence: null },
    { word: 'be it', startMs: 2_300, endMs: 2_800, confidence: null },
  ]
  expect(placeSpan({ ...untold, words }, bounds, speech)).toMatchObject({
    startMs: 2_200,
    endMs: 2_800,
  })
})

test('a text without times lies between the first speech and its first real pause', () => {
  const speech = hear([2_000, 2_500], [2_900, 3_300], [4_200, 4_400])
  expect(placeSpan(untold, bounds, speech)).toEqual({
    startMs: 2_000,
    endMs: 3_300,
    isReckoned: true,
  })
  expect(placeSpan({ startMs: 3_500, endMs: null }, bounds, speech)).toMatchObject({
    startMs: 3_500,
    endMs: 4_400,
  })
})

test('speech that goes on counts as far as the engine has taken it in', () => {
  expect(placeSpan(untold, bounds, hear([5_000, 6_800]))).toMatchObject({ endMs: 6_000 })
})

test('where no speech is heard a text lies between the last one and what was taken in', () => {
  expect(placeSpan(untold, bounds, hear())).toMatchObject({ startMs: 1_000, endMs: 6_000 })
})

test('no text overlaps the one before it, or lies in what was never given', () => {
  const speech = hear()
  expect(placeSpan({ startMs: 200, endMs: 9_000 }, bounds, speech)).toMatchObject({
    startMs: 1_000,
    endMs: 7_000,
  })
  expect(placeSpan({ startMs: 200, endMs: 700 }, bounds, speech)).toMatchObject({
    startMs: 1_000,
    endMs: 1_000,
  })
  const word = { word: 'late', startMs: 500, endMs: 1_700, confidence: 0.5 }
  expect(clampWord(word, 1_000, 1_500)).toEqual({ ...word, startMs: 1_000, endMs: 1_500 })
})

function hear(...stretches: (readonly [number, number])[]) {
  const speech = createSpeechMap()
  for (const [startMs, endMs] of stretches) speech.add({ startMs, endMs })
  return speech
}
