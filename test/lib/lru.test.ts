import { expect, test } from 'bun:test'
import { createLru } from '#lib/lru.ts'

test('the least recently used entry is evicted first', () => {
  const lru = createLru<string, number>(2)
  lru.set('a', 1)
  lru.set('b', 2)
  expect(lru.get('a')).toBe(1)
  lru.set('c', 3)
  expect(lru.get('b')).toBeUndefined()
  expect([lru.get('a'), lru.get('c')]).toEqual([1, 3])
})

test('setting a key again replaces its value without a second entry', () => {
  const lru = createLru<string, number>(2)
  lru.set('a', 1)
  lru.set('b', 2)
  lru.set('a', 3)
  expect([lru.get('a'), lru.get('b')]).toEqual([3, 2])
})
