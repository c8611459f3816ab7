import { expect, test } from 'bun:test'
import { StablePrefix } from '#speech/recognition/transcript-writer.ts'
import { createDice } from '#test/support/dice.ts'

test('words shared by two consecutive hypotheses are stable', () => {
  const stable = new StablePrefix()
  expect(stable.update('go')).toEqual({ text: 'go', stableText: '' })
  expect(stable.update('go four')).toEqual({ text: 'go four', stableText: 'go' })
  expect(stable.update('go forward ten')).toEqual({ text: 'go forward ten', stableText: 'go' })
  expect(stable.update('go forward tenths').stableText).toBe('go forward')
})

test('partial words and repeated hypotheses are not stable', () => {
  const stable = new StablePrefix()
  stable.update('for')
  expect(stable.update('forward').stableText).toBe('')
  expect(stable.update('forward').stableText).toBe('')
  expect(stable.update('forward ten').stableText).toBe('forward')
})

test('stable words stay when a later hypothesis is shorter or different', () => {
  const stable = new StablePrefix()
  stable.update('go forward ten')
  stable.update('go forward ten meters')
  expect(stable.update('go')).toEqual({ text: 'go forward ten', stableText: 'go forward ten' })
  expect(stable.update('no four ten meters').text).toBe('go forward ten meters')
  stable.reset()
  expect(stable.update('no')).toEqual({ text: 'no', stableText: '' })
})

test('the stable prefix always starts the text and never shrinks', () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const dice = createDice(seed)
    const stable = new StablePrefix()
    let before = ''
    for (let round = 0; round < 30; round += 1) {
      const length = dice.upTo(8)
      const words = Array.from({ length }, (_, at) => `${at}${'ab'[dice.upTo(2)]}`)
      const { text, stableText } = stable.update(words.join(dice.upTo(2) === 0 ? ' ' : '  '))
      expect(stableText).toStartWith(before)
      expect(stableText === '' || `${text} `.startsWith(`${stableText} `)).toBe(true)
      before = stableText
    }
  }
})
