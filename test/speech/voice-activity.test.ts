import { expect, test } from 'bun:test'
import { VoiceActivity, type VoiceChange } from '#speech/voice-activity.ts'
import { createDice } from '#test/support/dice.ts'
import { silence, tone } from '#test/support/engine-session.ts'
import { speechFile, speechToolsExist } from '#test/support/speech-material.ts'
import { joined } from '#test/support/write-audio.ts'

const rate = 16_000

test('speech is located at any sample rate', () => {
  for (const rateHz of [8_000, 11_025, 16_000, 24_000, 48_000]) {
    const activity = new VoiceActivity(rateHz)
    const audio = joined(silence(600, rateHz), tone(900, rateHz), silence(800, rateHz))
    const [begun, ended, ...more] = activity.push(audio)
    expect(begun?.speaking).toBe(true)
    expect(ended?.speaking).toBe(false)
    expect(Math.abs((begun?.atMs ?? 0) - 600)).toBeLessThanOrEqual(20)
    expect(Math.abs((ended?.atMs ?? 0) - 1_500)).toBeLessThanOrEqual(20)
    expect(more).toEqual([])
  }
})

test('a click is not speech, and a short pause does not end speech', () => {
  const activity = new VoiceActivity(rate)
  expect(activity.push(joined(tone(20, rate), silence(500, rate)))).toEqual([])
  const changes = activity.push(
    joined(tone(300, rate), silence(300, rate), tone(300, rate), silence(500, rate)),
  )
  expect(changes.map(({ atMs }) => atMs)).toEqual([520, 1_420])
})

test('steady noise counts as silence, and louder speech is still detected', () => {
  const activity = new VoiceActivity(rate)
  // Around -37 dB.
  const noise = (ms: number) => noisy(ms, 800)
  const first = pushAll(activity, noise(8_000))
  expect(first.map(({ speaking }) => speaking)).toEqual([true, false])
  expect(pushAll(activity, noise(20_000))).toEqual([])
  const second = pushAll(activity, joined(tone(1_000, rate), noise(1_000)))
  expect(second.map(({ atMs }) => atMs)).toEqual([28_000, 29_000])
})

test('speech in progress can be read and cut', () => {
  const activity = new VoiceActivity(rate)
  expect(activity.current()).toBeNull()
  expect(activity.cut()).toBeNull()
  activity.push(tone(500, rate, 3_277))
  expect(activity.current()).toMatchObject({ startMs: 0, endMs: 500 })
  expect(activity.current()?.levelDbfs).toBeCloseTo(-23, 0)
  expect(activity.cut()).toMatchObject({ startMs: 0, endMs: 500 })
  expect(activity.current()).toBeNull()
  expect(activity.push(tone(100, rate))).toMatchObject([{ speaking: true, atMs: 500 }])
})

test.skipIf(!speechToolsExist)('a spoken sentence is one span of speech', () => {
  const bytes = speechFile('fox', 'pcm_int16')
  const [begun, ended, ...more] = new VoiceActivity(rate).push(
    new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2),
  )
  expect(Math.abs((begun?.atMs ?? 0) - 740)).toBeLessThan(100)
  expect(Math.abs((ended?.atMs ?? 0) - 4_460)).toBeLessThan(150)
  expect(more).toEqual([])
})

function pushAll(activity: VoiceActivity, audio: Int16Array) {
  const changes: VoiceChange[] = []
  for (let from = 0; from < audio.length; from += rate) {
    changes.push(...activity.push(audio.slice(from, from + rate)))
  }
  return changes
}

function noisy(ms: number, amplitude: number): Int16Array {
  const dice = createDice(ms)
  return silence(ms, rate).map(() => dice.upTo(2 * amplitude) - amplitude)
}
