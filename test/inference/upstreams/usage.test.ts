import { describe, expect, test } from 'bun:test'
import type { Usage } from '#inference/events.ts'
import { readUsage as readChatUsage } from '#inference/upstreams/chat-completions/read.ts'
import { createUsageCounts, updateUsage, usageOf } from '#inference/upstreams/messages/read.ts'
import { readUsage as readResponsesUsage } from '#inference/upstreams/responses/read.ts'
import type { JsonObject } from '#lib/json.ts'

const usage = (given: Partial<Usage>): Usage => ({
  inputTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  totalTokens: 0,
  ...given,
})

const chat = (
  prompt_tokens: unknown,
  completion_tokens: unknown,
  reasoning_tokens?: unknown,
  total_tokens?: unknown,
): JsonObject => ({
  prompt_tokens,
  completion_tokens,
  completion_tokens_details: { reasoning_tokens },
  total_tokens,
})

describe('usage of a chat upstream', () => {
  test.each<[string, unknown, Usage | null]>([
    ['nothing', undefined, null],
    ['null', null, null],
    ['no counts', { total_tokens: 5 }, null],
    ['counts of other types', { prompt_tokens: '5', completion_tokens: null }, null],
    ['input alone', chat(5, undefined), usage({ inputTokens: 5, totalTokens: 5 })],
    ['output alone', chat(undefined, 5), usage({ outputTokens: 5, totalTokens: 5 })],
    ['no total', chat(5, 7), usage({ inputTokens: 5, outputTokens: 7, totalTokens: 12 })],
    [
      'a total of its own',
      chat(5, 7, 0, 20),
      usage({ inputTokens: 5, outputTokens: 7, totalTokens: 20 }),
    ],
    [
      'reasoning within the output',
      chat(5, 7, 4, 12),
      usage({ inputTokens: 5, outputTokens: 7, reasoningTokens: 4, totalTokens: 12 }),
    ],
    [
      'reasoning that is all of the output',
      chat(5, 7, 7),
      usage({ inputTokens: 5, outputTokens: 7, reasoningTokens: 7, totalTokens: 12 }),
    ],
    [
      'more reasoning than output',
      chat(5, 7, 8),
      usage({ inputTokens: 5, outputTokens: 15, reasoningTokens: 8, totalTokens: 20 }),
    ],
    [
      'a total that proves separate reasoning',
      chat(12, 340, 2, 354),
      usage({ inputTokens: 12, outputTokens: 342, reasoningTokens: 2, totalTokens: 354 }),
    ],
    [
      'a total that proves nothing',
      chat(12, 340, 2, 353),
      usage({ inputTokens: 12, outputTokens: 340, reasoningTokens: 2, totalTokens: 353 }),
    ],
    [
      'cached input',
      { ...chat(9, 1), prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 } },
      usage({
        inputTokens: 9,
        cachedTokens: 4,
        cacheWriteTokens: 3,
        outputTokens: 1,
        totalTokens: 10,
      }),
    ],
    [
      'cached input in the field of DeepSeek',
      { ...chat(9, 1), prompt_cache_hit_tokens: 4 },
      usage({ inputTokens: 9, cachedTokens: 4, outputTokens: 1, totalTokens: 10 }),
    ],
    [
      'cached input in both fields',
      { ...chat(9, 1), prompt_tokens_details: { cached_tokens: 2 }, prompt_cache_hit_tokens: 4 },
      usage({ inputTokens: 9, cachedTokens: 2, outputTokens: 1, totalTokens: 10 }),
    ],
  ])('%s', (_name, wire, expected) => {
    expect(readChatUsage(wire)).toEqual(expected)
  })
})

describe('usage of a Responses upstream', () => {
  test.each<[string, unknown, Usage | null]>([
    ['nothing', undefined, null],
    ['a list', [], null],
    ['no counts', {}, usage({})],
    [
      'no total',
      { input_tokens: 5, output_tokens: 7 },
      usage({ inputTokens: 5, outputTokens: 7, totalTokens: 12 }),
    ],
    [
      'everything',
      {
        input_tokens: 5,
        input_tokens_details: { cached_tokens: 2, cache_write_tokens: 1 },
        output_tokens: 7,
        output_tokens_details: { reasoning_tokens: 3 },
        total_tokens: 13,
      },
      usage({
        inputTokens: 5,
        cachedTokens: 2,
        cacheWriteTokens: 1,
        outputTokens: 7,
        reasoningTokens: 3,
        totalTokens: 13,
      }),
    ],
  ])('%s', (_name, wire, expected) => {
    expect(readResponsesUsage(wire)).toEqual(expected)
  })
})

describe('usage of a Messages upstream', () => {
  const read = (...reports: unknown[]) => {
    const counts = createUsageCounts()
    for (const report of reports) updateUsage(counts, report)
    return usageOf(counts)
  }

  test('is unknown without a report', () => {
    expect(read()).toBeNull()
    expect(read(null, undefined, 'x')).toBeNull()
  })

  test('input includes what was read from and written to the cache', () => {
    const report = {
      input_tokens: 5,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 10,
      output_tokens: 3,
      output_tokens_details: { thinking_tokens: 2 },
    }
    expect(read(report)).toEqual(
      usage({
        inputTokens: 115,
        cachedTokens: 100,
        cacheWriteTokens: 10,
        outputTokens: 3,
        reasoningTokens: 2,
        totalTokens: 118,
      }),
    )
  })

  test('later counts replace earlier ones, but zero, null and texts do not', () => {
    const first = { input_tokens: 5, output_tokens: 1 }
    expect(read(first, { input_tokens: 0, output_tokens: 9 })).toMatchObject({
      inputTokens: 5,
      outputTokens: 9,
      totalTokens: 14,
    })
    expect(read(first, { input_tokens: null, output_tokens: '9' })).toMatchObject({
      inputTokens: 5,
      outputTokens: 1,
    })
    expect(read({ input_tokens: 0 }, { input_tokens: 7 })).toMatchObject({ inputTokens: 7 })
    expect(read(first, { input_tokens: 8, output_tokens: 0 })).toMatchObject({
      inputTokens: 8,
      outputTokens: 1,
    })
  })
})
