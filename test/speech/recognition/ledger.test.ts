import { expect, test } from 'bun:test'
import { AudioLedger } from '#speech/recognition/ledger.ts'
import { SpeechSpans } from '#speech/recognition/speech-activity.ts'
import { createDice } from '#test/support/dice.ts'

test('every millisecond is counted in exactly one total for random input', () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const dice = createDice(seed)
    const speech = new SpeechSpans()
    const ledger = new AudioLedger(speech)
    let receivedMs = 0
    let coveredMs = 0
    let lostMs = 0
    for (let round = 0; round < 40; round += 1) {
      const startMs = receivedMs + dice.upTo(900)
      receivedMs = startMs + 1 + dice.upTo(2_000)
      // The detector may find the last sound before a gap inside of it.
      if (dice.upTo(4) === 0) {
        const lost = { startMs: startMs + dice.upTo(receivedMs - startMs), endMs: receivedMs }
        ledger.addLost(lost)
        lostMs += lost.endMs - lost.startMs
      }
      if (dice.upTo(4) > 0) speech.add({ startMs, endMs: receivedMs })
      const settledMs = ledger.settledMs
      const from = settledMs + dice.upTo(receivedMs - settledMs)
      const to = from + dice.upTo(receivedMs - from)
      const chance = dice.upTo(3)
      if (chance === 0) {
        ledger.addFinal(from, to, dice.upTo(2) === 0)
        coveredMs += to - from
      }
      if (chance === 1) ledger.writeOff(to)
      const totals = ledger.totals(receivedMs)
      expect(totals.coveredMs + totals.silenceMs + totals.untranscribedMs).toBe(receivedMs)
      expect(totals.coveredMs).toBeGreaterThanOrEqual(coveredMs - lostMs)
      expect(totals.untranscribedMs).toBeGreaterThanOrEqual(lostMs)
      expect(totals.silenceMs).toBeGreaterThanOrEqual(0)
      const gapsMs = totals.gaps.reduce((sum, gap) => sum + gap.endMs - gap.startMs, 0)
      expect(gapsMs).toBe(totals.untranscribedMs)
      for (const [at, gap] of totals.gaps.entries()) {
        expect(gap.startMs).toBeGreaterThanOrEqual(totals.gaps[at - 1]?.endMs ?? 0)
      }
    }
  }
})

test('speech without a final is untranscribed and listed as a gap; the rest is silence', () => {
  const { ledger } = createLedger([100, 900], [2_000, 2_500], [4_000, 4_600])
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

test('what the source has lost is a gap, even in the middle of a final', () => {
  const { ledger } = createLedger([100, 900], [3_000, 4_000])
  ledger.addLost({ startMs: 500, endMs: 700 })
  ledger.addLost({ startMs: 2_000, endMs: 3_000 })
  ledger.addFinal(100, 900, true)
  expect(ledger.totals(4_000)).toEqual({
    coveredMs: 600,
    silenceMs: 100 + 1_100,
    untranscribedMs: 200 + 1_000 + 1_000,
    gaps: [
      { startMs: 500, endMs: 700 },
      { startMs: 2_000, endMs: 4_000 },
    ],
  })
})

test('short sound around a final belongs to it, since engine and detector times differ', () => {
  const { ledger } = createLedger([600, 4_600])
  ledger.addFinal(740, 4_460, true)
  expect(ledger.totals(6_000)).toMatchObject({ coveredMs: 4_000, untranscribedMs: 0 })
})

test('speech after a final without a pause is not counted as the end of its last word', () => {
  const { ledger } = createLedger([1_000, 3_150])
  ledger.addFinal(1_000, 3_000, false)
  expect(ledger.totals(4_000).gaps).toEqual([{ startMs: 3_000, endMs: 3_150 }])
  expect(ledger.pendingFromMs()).toBe(3_000)
})

test('writing off audio returns its speech without the silence', () => {
  const { ledger } = createLedger([500, 1_000], [3_000, 4_000])
  expect(ledger.writeOff(3_400)).toEqual([
    { startMs: 500, endMs: 1_000 },
    { startMs: 3_000, endMs: 3_400 },
  ])
  expect(ledger.writeOff(3_000)).toEqual([])
  ledger.addFinal(3_500, 4_000, true)
  expect(ledger.totals(4_000).gaps).toEqual([
    { startMs: 500, endMs: 1_000 },
    { startMs: 3_000, endMs: 3_500 },
  ])
})

test('a final in silence counts as covered', () => {
  const { ledger } = createLedger()
  ledger.addFinal(1_000, 1_500, true)
  expect(ledger.totals(3_000)).toMatchObject({ coveredMs: 500, silenceMs: 2_500 })
})

test('the number of listed gaps is limited; all gaps are counted', () => {
  const spans = Array.from({ length: 500 }, (_, at) => [at * 1_000, at * 1_000 + 500] as const)
  const { ledger } = createLedger(...spans)
  ledger.writeOff(500_000)
  const { gaps, untranscribedMs } = ledger.totals(500_000)
  expect(gaps).toHaveLength(100)
  expect(untranscribedMs).toBe(250_000)
})

test('beyond the limit the oldest speech spans are joined, never dropped', () => {
  const spans = Array.from({ length: 5_000 }, (_, at) => [at * 100, at * 100 + 50] as const)
  const { ledger, speech } = createLedger(...spans)
  expect(speech.within(0, 500_000).length).toBeLessThanOrEqual(1_024)
  expect(ledger.totals(500_000).untranscribedMs).toBeGreaterThanOrEqual(250_000)
})

function createLedger(...spans: (readonly [number, number])[]) {
  const speech = new SpeechSpans()
  for (const [startMs, endMs] of spans) speech.add({ startMs, endMs })
  return { speech, ledger: new AudioLedger(speech) }
}
