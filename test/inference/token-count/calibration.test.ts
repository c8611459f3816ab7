import { describe, expect, test } from 'bun:test'
import { Calibration } from '#inference/token-count/calibration.ts'
import { type ClassTokens, classifyText, noTokens } from '#inference/token-count/measured-text.ts'
import { textKinds, textOf } from '#test/support/token-texts.ts'

const counted = (tokens: Partial<ClassTokens>): ClassTokens => ({ ...noTokens(), ...tokens })

function repeat(times: number, learn: () => void): void {
  for (let turn = 0; turn < times; turn++) learn()
}

describe('counts converge to what an upstream reports', () => {
  test('for one class, from either side', () => {
    for (const truth of [850, 1_000, 1_450]) {
      const calibration = new Calibration({ modelsMax: 10 })
      const prose = counted({ prose: 1_000 })
      const errors = [1, 2, 3, 4, 5, 6].map(() => {
        calibration.learn('a', prose, truth)
        return Math.abs(calibration.correct('a', prose) - truth)
      })
      expect(errors).toEqual(errors.toSorted((one, next) => next - one))
      repeat(20, () => calibration.learn('a', prose, truth))
      expect(calibration.correct('a', prose)).toBeCloseTo(truth, 0)
    }
  })

  test('for each class, though requests mix them', () => {
    const calibration = new Calibration({ modelsMax: 10 })
    const mixtures = [
      { prose: 900, code: 100 },
      { prose: 200, code: 700 },
      { prose: 500, script: 400 },
    ].map(counted)
    const truth = ({ prose, code, script }: ClassTokens) => prose * 0.9 + code * 1.2 + script * 1.5
    repeat(100, () => {
      for (const mixture of mixtures) calibration.learn('a', mixture, truth(mixture))
    })
    expect(calibration.correct('a', counted({ prose: 1_000 }))).toBeCloseTo(900, -1)
    expect(calibration.correct('a', counted({ code: 1_000 }))).toBeCloseTo(1_200, -1)
    expect(calibration.correct('a', counted({ script: 1_000 }))).toBeCloseTo(1_500, -1)
  })

  test('for one model only', () => {
    const calibration = new Calibration({ modelsMax: 10 })
    const prose = counted({ prose: 1_000 })
    repeat(30, () => calibration.learn('a', prose, 1_300))
    expect(calibration.correct('b', prose)).toBe(1_000)
  })
})

describe('a report is ignored', () => {
  test('beyond factors of 0.8 and 1.6', () => {
    const calibration = new Calibration({ modelsMax: 10 })
    const prose = counted({ prose: 1_000 })
    repeat(50, () => calibration.learn('low', prose, 400))
    repeat(50, () => calibration.learn('high', prose, 2_500))
    expect(calibration.correct('low', prose)).toBe(800)
    expect(calibration.correct('high', prose)).toBe(1_600)
  })

  test.each([0, 5, 100, 100_000, Number.NaN])('where it is %d of a thousand', (reported) => {
    const calibration = new Calibration({ modelsMax: 10 })
    const prose = counted({ prose: 1_000 })
    repeat(10, () => calibration.learn('a', prose, reported))
    expect(calibration.correct('a', prose)).toBe(1_000)
  })
})

test('the number of models is limited', () => {
  const calibration = new Calibration({ modelsMax: 2 })
  const prose = counted({ prose: 1_000 })
  for (const model of ['a', 'b', 'c']) repeat(30, () => calibration.learn(model, prose, 1_300))
  expect(calibration.correct('a', prose)).toBe(1_000)
  expect(calibration.correct('c', prose)).toBeCloseTo(1_300, 0)
})

test('texts are classified', () => {
  expect(textKinds.map((kind) => [kind, classifyText(textOf(kind))])).toEqual([
    ['english', 'prose'],
    ['code', 'code'],
    ['json', 'code'],
    ['german', 'prose'],
    ['greek', 'script'],
    ['chinese', 'script'],
  ])
})
