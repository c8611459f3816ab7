import { describe, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import {
  callDelta,
  chunk,
  decodePayloads,
  finishOf,
  makeDecoder,
} from '#test/support/chat-decoding.ts'

const text = chunk({ content: 'Hello' })
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }

describe('without a finish reason', () => {
  const complete = (text: string, reason = 'stop') => ({
    types: ['generation-start', 'text-start', 'text-delta', 'text-end', 'finish'],
    text,
    reason,
  })
  const outcomeOf = (payloads: readonly unknown[]) => {
    const { events, error } = decodePayloads(payloads)
    expect(error).toBeNull()
    const texts = events.flatMap((event) => (event.type === 'text-delta' ? [event.text] : []))
    const finish = events.find((event) => event.type === 'finish')
    const types: string[] = events.map(({ type }) => type)
    return { types, text: texts.join(''), reason: String(finish?.reason) }
  }

  test.each([
    ['[DONE]', [text, '[DONE]']],
    ['a chunk that holds only usage', [text, { choices: [], usage }]],
    ['usage in a chunk without choices', [text, { usage }]],
    // Snowflake sends empty usage until the last chunk, whose delta is empty.
    ['usage beside an empty delta', [text, chunk({ content: '' }, null, { usage })]],
    ['usage and [DONE]', [text, { choices: [], usage }, '[DONE]']],
  ])('%s after content is a stop', (_, payloads) => {
    expect(outcomeOf(payloads)).toEqual(complete('Hello'))
  })

  test('usage before the content ends nothing', () => {
    const role = chunk({ role: 'assistant' }, null, { usage })
    expect(outcomeOf([role, text, '[DONE]'])).toEqual(complete('Hello'))
    const between = decodePayloads([text, { choices: [], usage }, text, '[DONE]'])
    expect(between.events.filter(({ type }) => type === 'text-delta')).toHaveLength(2)
    expect(between.error).toBeNull()
  })

  test('a complete call is a tool call', () => {
    const call = chunk(callDelta([0, 'a', 'look', '{"x":'], [0, 'a', null, '1}']))
    expect(finishOf([call, '[DONE]'])).toMatchObject({ reason: 'tool-calls', usage: null })
    const empty = chunk(callDelta([0, 'a', 'look', '']))
    expect(finishOf([empty, { choices: [], usage }])).toMatchObject({
      reason: 'tool-calls',
      usage: { totalTokens: 5 },
    })
  })

  test.each([
    ['an empty reason', { message: { content: 'Hi' }, finish_reason: '' }, 'Hi'],
    ['no reason', { message: { content: 'Hi' } }, 'Hi'],
    ['null', { message: { content: 'Hi' }, finish_reason: null }, 'Hi'],
    ['an empty reason without content', { message: { content: '' }, finish_reason: '' }, ''],
  ])('%s in a whole body is a stop', (_, choice, content) => {
    const decoder = makeDecoder()
    const out: GenerationEvent[] = []
    decoder.pushBody(JSON.stringify({ choices: [{ index: 0, ...choice }], usage }), out)
    decoder.end(out)
    const texts = out.flatMap((event) => (event.type === 'text-delta' ? [event.text] : []))
    expect(texts.join('')).toBe(content)
    expect(out.at(-1)).toMatchObject({ type: 'finish', reason: 'stop', usage: { totalTokens: 5 } })
  })

  test.each([
    ['without content', { message: { content: '' }, finish_reason: null }],
    ['with a cut call', { message: callDelta([0, 'a', 'look', '{"x":']), finish_reason: null }],
    ['that is only a chunk', { delta: { content: 'Hi' }, finish_reason: null }],
  ])('a body %s is truncated', (_, choice) => {
    const decoder = makeDecoder()
    expect(() => {
      decoder.pushBody(JSON.stringify({ choices: [{ index: 0, ...choice }] }), [])
      decoder.end([])
    }).toThrow('truncated')
  })
})
