import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { callDelta, chunk, decodeBytes, decodePayloads } from '#test/support/chat-decoding.ts'

const stream = readFileSync(
  join(import.meta.dir, '../../../fixtures/chat-completions/logprobs.sse'),
)

test('log probabilities accompany their text, and missing bytes are computed', () => {
  const { events } = decodeBytes([stream], { logprobs: true })
  const entry = (token: string, logprob: number, bytes: number[]) => {
    const plain = { token, logprob, bytes }
    return { ...plain, top: [plain] }
  }
  expect(events.filter((event) => event.type === 'text-delta')).toEqual([
    {
      type: 'text-delta',
      block: 0,
      text: '\nHi',
      logprobs: [entry('\n', -0.5, [10]), entry('Hi', -0.25, [72, 105])],
    },
    { type: 'text-delta', block: 0, text: 'ö', logprobs: [entry('ö', -1, [0xc3, 0xb6])] },
  ])
})

test('log probabilities are emitted only if requested', () => {
  const { events } = decodeBytes([stream])
  expect(events.filter((event) => 'logprobs' in event)).toEqual([])
})

test('log probabilities of whitespace that is dropped before a call are dropped', () => {
  const withLogprobs = (delta: object, token: string) => {
    const { choices } = chunk(delta)
    const logprobs = { content: [{ token, logprob: -1, top_logprobs: [] }] }
    return { choices: choices.map((choice) => ({ ...choice, logprobs })) }
  }
  const { events } = decodePayloads(
    [
      withLogprobs({ content: '\n' }, '\n'),
      chunk(callDelta([0, 'a', 'look', '{}'])),
      withLogprobs({ content: 'Hi' }, 'Hi'),
      chunk({}, 'stop'),
    ],
    { logprobs: true },
  )
  const deltas = events.filter((event) => event.type === 'text-delta')
  expect(deltas).toMatchObject([{ text: 'Hi', logprobs: [{ token: 'Hi' }] }])
  expect(deltas[0]?.logprobs).toHaveLength(1)
})
