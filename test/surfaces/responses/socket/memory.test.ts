import { describe, expect, test } from 'bun:test'
import type { StoredItem } from '#responses/response.ts'
import { createHistoryMemories } from '#surfaces/responses/socket/memory.ts'

/** The histories of unstored responses of a connection. */

/** An item with this many characters of JSON. */
function itemOf(chars: number): StoredItem {
  const item = { id: 'msg_1', type: 'message', text: '' }
  return { ...item, text: 'x'.repeat(chars - JSON.stringify(item).length) }
}

const large = { memoryCharsMax: 1_000_000, memoryTotalCharsMax: 1_000_000 }

describe('one connection', () => {
  test('finds what it stored, until it forgets it', () => {
    const memory = createHistoryMemories(large).open()
    const items = [itemOf(100)]
    memory.remember('resp_1', items, null)
    expect(memory.find('resp_1')).toBe(items)
    expect(memory.find('resp_2')).toBeUndefined()
    memory.forget('resp_1', null)
    memory.forget('resp_1', null)
    expect(memory.find('resp_1')).toBeUndefined()
  })

  test('keeps the newest of many', () => {
    const memory = createHistoryMemories(large).open()
    for (let at = 0; at < 100; at++) memory.remember(`resp_${at}`, [itemOf(100)], null)
    const kept = Array.from({ length: 100 }, (_, at) => at).filter((at) =>
      memory.find(`resp_${at}`),
    )
    expect(kept).toEqual([92, 93, 94, 95, 96, 97, 98, 99])
  })

  test('keeps the newest of each lane', () => {
    const memory = createHistoryMemories(large).open()
    memory.remember('resp_quiet', [itemOf(100)], 'quiet')
    for (let at = 0; at < 20; at++) memory.remember(`resp_${at}`, [itemOf(100)], 'busy')
    expect(memory.find('resp_quiet')).toBeDefined()
    expect(memory.find('resp_11')).toBeUndefined()
    expect(memory.find('resp_12')).toBeDefined()
  })

  test('keeps what another lane failed to continue', () => {
    const memory = createHistoryMemories(large).open()
    memory.remember('resp_1', [itemOf(100)], 'main')
    memory.forget('resp_1', 'fork')
    memory.forget('resp_1', null)
    expect(memory.find('resp_1')).toBeDefined()
    memory.forget('resp_1', 'main')
    expect(memory.find('resp_1')).toBeUndefined()
  })

  test('keeps the newest that fit', () => {
    const memory = createHistoryMemories({ ...large, memoryCharsMax: 1_000 }).open()
    for (let at = 0; at < 4; at++) memory.remember(`resp_${at}`, [itemOf(200), itemOf(200)], null)
    expect([0, 1, 2, 3].map((at) => memory.find(`resp_${at}`) !== undefined)).toEqual([
      false,
      false,
      true,
      true,
    ])
    memory.remember('resp_whole', [itemOf(1_000)], null)
    expect([2, 3].map((at) => memory.find(`resp_${at}`))).toEqual([undefined, undefined])
    expect(memory.find('resp_whole')).toBeDefined()
    memory.remember('resp_over', [itemOf(1_001)], null)
    expect(memory.find('resp_over')).toBeUndefined()
    expect(memory.find('resp_whole')).toBeDefined()
  })
})

describe('several connections', () => {
  test('do not share their histories', () => {
    const memories = createHistoryMemories(large)
    const [first, second] = [memories.open(), memories.open()]
    first.remember('resp_1', [itemOf(100)], null)
    second.remember('resp_1', [itemOf(200)], null)
    second.forget('resp_1', null)
    expect(first.find('resp_1')).toEqual([itemOf(100)])
    expect(second.find('resp_1')).toBeUndefined()
  })

  test('share the total limit; the oldest history of any connection is evicted first', () => {
    const memories = createHistoryMemories({ memoryCharsMax: 1_000, memoryTotalCharsMax: 1_000 })
    const [first, second] = [memories.open(), memories.open()]
    first.remember('resp_1', [itemOf(400)], null)
    second.remember('resp_2', [itemOf(400)], null)
    first.remember('resp_3', [itemOf(400)], null)
    expect(first.find('resp_1')).toBeUndefined()
    expect(second.find('resp_2')).toBeDefined()
    second.clear()
    expect(second.find('resp_2')).toBeUndefined()
    first.remember('resp_4', [itemOf(600)], null)
    expect(first.find('resp_3')).toBeDefined()
    expect(first.find('resp_4')).toBeDefined()
  })
})
