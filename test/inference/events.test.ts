import { describe, expect, test } from 'bun:test'
import {
  addUsage,
  appendEvents,
  type BlockEvent,
  type EventBatch,
  endOfBlock,
  type GenerationEvent,
  joinRelays,
  type Relay,
  textOfFrame,
  usageOfTokens,
  withRelay,
  withSpentUsage,
} from '#inference/events.ts'

const block = 3
const item = { type: 'web_search_call' }
const call = { callId: 'c', name: 'look', form: 'function' } as const
const citation = { kind: 'url', url: 'u', title: 't', startIndex: 0, endIndex: 1 } as const
const incomplete = { block, complete: false } as const

test.each<[BlockEvent, BlockEvent[]]>([
  [{ type: 'text-start', block, form: 'answer' }, [{ type: 'text-end', ...incomplete }]],
  [{ type: 'text-delta', block, text: 'a' }, [{ type: 'text-end', ...incomplete }]],
  [{ type: 'citation', block, citation }, [{ type: 'text-end', ...incomplete }]],
  [{ type: 'reasoning-start', block }, [{ type: 'reasoning-end', ...incomplete }]],
  [
    { type: 'reasoning-delta', block, part: 0, text: '' },
    [{ type: 'reasoning-end', ...incomplete }],
  ],
  [{ type: 'tool-call-start', block, call }, [{ type: 'tool-call-end', ...incomplete }]],
  [{ type: 'tool-call-delta', block, text: '' }, [{ type: 'tool-call-end', ...incomplete }]],
  [{ type: 'hosted-tool-start', block, item }, [{ type: 'hosted-tool-end', block, item: null }]],
  [
    { type: 'hosted-tool-progress', block, stage: 'x' },
    [{ type: 'hosted-tool-end', block, item: null }],
  ],
  [
    { type: 'hosted-tool-delta', block, text: '' },
    [{ type: 'hosted-tool-end', block, item: null }],
  ],
  [
    { type: 'hosted-tool-event', block, name: 'shell_call_command.added', fields: {} },
    [{ type: 'hosted-tool-end', block, item: null }],
  ],
  [{ type: 'text-end', block, complete: true }, []],
  [{ type: 'hosted-tool-end', block, item }, []],
])('what %j leaves open ends incomplete', (last, end) => {
  expect(endOfBlock(last)).toEqual(end)
})

test('nothing is open at the start of a generation', () => {
  expect(endOfBlock({ type: 'generation-start' })).toEqual([])
})

describe('held events', () => {
  const text = (said: string): GenerationEvent => ({ type: 'text-delta', block: 0, text: said })
  const thought = (part: number, said: string): GenerationEvent => ({
    type: 'reasoning-delta',
    block: 0,
    part,
    text: said,
  })
  const held = (...batches: EventBatch[]) => {
    const all: GenerationEvent[] = []
    for (const batch of batches) appendEvents(all, batch)
    return all
  }

  test('join the deltas of a text', () => {
    expect(held([text('a'), text('b')], [text('c')])).toEqual([text('abc')])
    expect(held([thought(0, 'a'), thought(0, 'b')])).toEqual([thought(0, 'ab')])
  })

  test('keep paragraphs, other events and log probabilities apart', () => {
    const probable: GenerationEvent = { type: 'text-delta', block: 0, text: 'b', logprobs: [] }
    const apart: EventBatch[] = [
      [thought(0, 'a'), thought(1, 'b')],
      [text('a'), thought(0, 'b')],
      [text('a'), probable, text('c')],
      [{ type: 'text-start', block: 0, form: 'answer' }, text('a')],
    ]
    for (const batch of apart) expect(held(batch)).toEqual([...batch])
  })
})

describe('frames', () => {
  const relay = (data: string): Relay => ({
    protocol: 'messages',
    maker: data,
    frames: [{ payload: { type: data }, data }],
  })

  test('are attached to a batch, and joined in order', () => {
    expect(withRelay([], relay('a')).relay).toEqual(relay('a'))
    expect(withRelay([], undefined)).not.toHaveProperty('relay')
    expect(joinRelays(relay('a'), relay('b'))).toEqual({
      ...relay('b'),
      frames: [...relay('a').frames, ...relay('b').frames],
    })
    expect(joinRelays(undefined, relay('b'))).toEqual(relay('b'))
    expect(joinRelays(relay('a'), undefined)).toEqual(relay('a'))
    expect(joinRelays(undefined, undefined)).toBeUndefined()
  })

  test('have the text that arrived, or that of their payload', () => {
    expect(textOfFrame({ payload: { a: 1 }, data: '{"a": 1}' })).toBe('{"a": 1}')
    expect(textOfFrame({ payload: { a: 1 }, data: '' })).toBe('{"a":1}')
  })
})

describe('usage', () => {
  const usage = {
    inputTokens: 1,
    cachedTokens: 2,
    cacheWriteTokens: 3,
    outputTokens: 4,
    reasoningTokens: 5,
    totalTokens: 6,
  }
  const twice = {
    inputTokens: 2,
    cachedTokens: 4,
    cacheWriteTokens: 6,
    outputTokens: 8,
    reasoningTokens: 10,
    totalTokens: 12,
  }

  test('is added field by field, and an unknown one is nothing', () => {
    expect(addUsage(usage, usage)).toEqual(twice)
    expect([addUsage(null, usage), addUsage(usage, null), addUsage(null, null)]).toEqual([
      usage,
      usage,
      null,
    ])
  })

  test('of two totals has no details', () => {
    expect(usageOfTokens(7, 5)).toEqual({
      inputTokens: 7,
      cachedTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: 5,
      reasoningTokens: 0,
      totalTokens: 12,
    })
  })

  test('of earlier attempts is added to the end of a generation', () => {
    const start: GenerationEvent = { type: 'generation-start' }
    const finish: GenerationEvent = { type: 'finish', reason: 'stop', rawReason: null, usage }
    const batch = [start, finish]
    expect(withSpentUsage(batch, usage)).toEqual([start, { ...finish, usage: twice }])
    for (const [unchanged, spent] of [
      [batch, null],
      [[start], usage],
      [[], usage],
      [withRelay([...batch], { protocol: 'messages', maker: '', frames: [] }), usage],
    ] as const) {
      expect(withSpentUsage(unchanged, spent)).toBe(unchanged)
    }
  })
})
