import { expect, test } from 'bun:test'
import { createLedger } from '#speech/recognition/ledger.ts'
import { createSpeechMap } from '#speech/recognition/speech-map.ts'
import { createDice } from '#test/support/dice.ts'

test('every millisecond is in exactly one sum, whatever comes', () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const dice = createDice(seed)
    const speech = createSpeechMap()
    const ledger = createLedger(speech)
    let receivedMs = 0
    let coveredMs = 0
    for (let round = 0; round < 40; round += 1) {
      const startMs = receivedMs + dice.upTo(900)
      receivedMs = startMs + 1 + dice.upTo(2_000)
      if (dice.upTo(4) > 0) speech.add({ startMs, endMs: receivedMs })
      const edgeMs = ledger.edgeMs()
      const from = edgeMs + dice.upTo(receivedMs - edgeMs)
      const to = from + dice.upTo(receivedMs - from)
      const chance = dice.upTo(3)
      if (chance === 0) {
        ledger.addFinal(from, to, dice.upTo(2) === 0)
        coveredMs += to - from
      }
      if (chance === 1) ledger.giveUp(to)
      const totals = ledger.totals(receivedMs)
      expect(totals.coveredMs + totals.silenceMs + totals.untranscribedMs).toBe(receivedMs)
      expect(totals.coveredMs).toBeGreaterThanOrEqual(coveredMs)
      const gapsMs = totals.gaps.reduce((sum, gap) => sum + gap.endMs - gap.startMs, 0)
      expect(gapsMs).toBe(totals.untranscribedMs)
      for (const [at, gap] of totals.gaps.entries()) {
        expect(gap.startMs).toBeGreaterThanOrEqual(totals.gaps[at - 1]?.endMs ?? 0)
      }
    }
  }
})

test('speech without a final is untranscribed, and named; what is quiet is silence', () => {
  const { ledger } = hear([100, 900], [2_000, 2_500], [4_000, 4_600])
  ledger.addFinal(2_000, 2_500, true)
  expect(ledger.totals(5_000)).toEqual({
    coveredMs: 500,
    silenceMs: 5_000 - 500 - 800 - 600,
    untranscribedMs: 1_400,
    gaps: [
      { startMs: 100, endMs: 900 },
      { startMs: 4_000, endMs: 4_600 },
    ],
  })
})

test('a little sound around a final belongs to it, as engines and ears differ', () => {
  const { ledger } = hear([600, 4_600])
  ledger.addFinal(740, 4_460, true)
  expect(ledger.totals(6_000)).toMatchObject({ coveredMs: 4_000, untranscribedMs: 0 })
})

test('where an engine cut amid speech, what follows is not taken for the end of a word', () => {
  const { ledger } = hear([1_000, 3_150])
  ledger.addFinal(1_000, 3_000, false)
  expect(ledger.totals(4_000).gaps).toEqual([{ startMs: 3_000, endMs: 3_150 }])
  expect(ledger.pendingFromMs()).toBe(3_000)
})

test('what is given up is told, without the silence in it', () => {
  const { ledger } = hear([500, 1_000], [3_000, 4_000])
  expect(ledger.giveUp(3_400)).toEqual([
    { startMs: 500, endMs: 1_000 },
    { startMs: 3_000, endMs: 3_400 },
  ])
  expect(ledger.giveUp(3_000)).toEqual([])
  ledger.addFinal(3_500, 4_000, true)
  expect(ledger.totals(4_000).gaps).toEqual([
    { startMs: 500, endMs: 1_000 },
    { startMs: 3_000, endMs: 3_500 },
  ])
})

test('a text that an engine found in silence counts as what it is', () => {
  const { ledger } = hear()
  ledger.addFinal(1_000, 1_500, true)
  expect(ledger.totals(3_000)).toMatchObject({ coveredMs: 500, silenceMs: 2_500 })
})

test('of very many gaps the first are named, and all are counted', () => {
  const stretches = Array.from({ length: 500 }, (_, at) => [at * 1_000, at * 1_000 + 500] as const)
  const { ledger } = hear(...stretches)
  ledger.giveUp(500_000)
  const { gaps, untranscribedMs } = ledger.totals(500_000)
  expect(gaps).toHaveLength(100)
  expect(untranscribedMs).toBe(250_000)
})

test('of very many stretches without a final the oldest are joined, never forgotten', () => {
  const stretches = Array.from({ length: 5_000 }, (_, at) => [at * 100, at * 100 + 50] as const)
  const { ledger, speech } = hear(...stretches)
  expect(speech.within(0, 500_000).length).toBeLessThanOrEqual(1_024)
  expect(ledger.totals(500_000).untranscribedMs).toBeGreaterThanOrEqual(250_000)
})

function hear(...stretches: (readonly [number, number])[]) {
  const speech = createSpeechMap()
  for (const [startMs, endMs] of stretches) speech.add({ startMs, endMs })
  return { speech, ledger: createLedger(speech) }
}
