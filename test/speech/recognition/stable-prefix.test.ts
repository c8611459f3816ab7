import { expect, test } from 'bun:test'
import { createStablePrefix } from '#speech/recognition/stable-prefix.ts'
import { createDice } from '#test/support/dice.ts'

test('the words that two hypotheses in a row agree on are stable', () => {
  const stable = createStablePrefix()
  expect(stable.take('go')).toEqual({ text: 'go', stableText: '' })
  expect(stable.take('go four')).toEqual({ text: 'go four', stableText: 'go' })
  expect(stable.take('go forward ten')).toEqual({ text: 'go forward ten', stableText: 'go' })
  expect(stable.take('go forward tenths').stableText).toBe('go forward')
})

test('a word counts only as a whole, and a repeated hypothesis not again', () => {
  const stable = createStablePrefix()
  stable.take('for')
  expect(stable.take('forward').stableText).toBe('')
  expect(stable.take('forward').stableText).toBe('')
  expect(stable.take('forward ten').stableText).toBe('forward')
})

test('what was stable stays, where a later hypothesis is shorter or has other words', () => {
  const stable = createStablePrefix()
  stable.take('go forward ten')
  stable.take('go forward ten meters')
  expect(stable.take('go')).toEqual({ text: 'go forward ten', stableText: 'go forward ten' })
  expect(stable.take('no four ten meters').text).toBe('go forward ten meters')
  stable.reset()
  expect(stable.take('no')).toEqual({ text: 'no', stableText: '' })
})

test('it is always the beginning of the text, and never shrinks', () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const dice = createDice(seed)
    const stable = createStablePrefix()
    let before = ''
    for (let round = 0; round < 30; round += 1) {
      const length = dice.upTo(8)
      const words = Array.from({ length }, (_, at) => `${at}${'ab'[dice.upTo(2)]}`)
      const { text, stableText } = stable.take(words.join(dice.upTo(2) === 0 ? ' ' : '  '))
      expect(stableText).toStartWith(before)
      expect(stableText === '' || `${text} `.startsWith(`${stableText} `)).toBe(true)
      before = stableText
    }
  }
})
