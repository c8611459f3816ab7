import { expect, test } from 'bun:test'
import { newId } from '#lib/id.ts'

test('an id is its prefix and 26 characters of a 32-character alphabet', () => {
  expect(newId('resp_')).toMatch(/^resp_[0-9abcdefghjkmnpqrstvwxyz]{26}$/)
})

test('ids never repeat, also across random blocks', () => {
  const ids = Array.from({ length: 2000 }, () => newId('fc_'))
  expect(new Set(ids).size).toBe(2000)
})

test('every character of an id is random', () => {
  const ids = Array.from({ length: 2000 }, () => newId(''))
  for (let place = 0; place < 26; place++) {
    // That one of 32 signs is missing in 2,000 draws happens once in 10²⁶ runs.
    expect(new Set(ids.map((id) => id.charAt(place))).size).toBe(32)
  }
})
