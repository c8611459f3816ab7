import { describe, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { AppError } from '#lib/errors.ts'
import {
  callBlock,
  foldMessage,
  generationOf,
  renderMessage,
  someUsage,
  textBlock,
} from '#test/support/message-rendering.ts'

type Finish = Extract<GenerationEvent, { type: 'finish' }>

/** The end of a message and its usage. */

const answer = textBlock(0, 'Well then.')
const call = callBlock(0, {})
const refused: GenerationEvent[] = [
  { type: 'text-start', block: 0, form: 'refusal' },
  { type: 'text-delta', block: 0, text: 'No.' },
  { type: 'text-end', block: 0, complete: true },
]
const sequence = { reason: 'stop-sequence', stopSequence: 'END' } as const
const full = { reason: 'length', rawReason: 'model_context_window_exceeded' } as const

const endings: [what: string, GenerationEvent[], Partial<Finish>, end: object][] = [
  ['an end of the turn', answer, {}, { stop_reason: 'end_turn' }],
  ['nothing at all', [], {}, { stop_reason: 'end_turn' }],
  ['calls', call, { reason: 'tool-calls' }, { stop_reason: 'tool_use' }],
  ['calls with the finish reason stop', call, {}, { stop_reason: 'tool_use' }],
  [
    'a finish reason for calls without calls',
    [],
    { reason: 'tool-calls' },
    { stop_reason: 'end_turn' },
  ],
  ['an output limit', answer, { reason: 'length' }, { stop_reason: 'max_tokens' }],
  ['an output limit after a call', call, { reason: 'length' }, { stop_reason: 'max_tokens' }],
  ['a full context window', answer, full, { stop_reason: 'model_context_window_exceeded' }],
  ['a pause', answer, { rawReason: 'pause_turn' }, { stop_reason: 'pause_turn' }],
  ['a stop sequence', answer, sequence, { stop_reason: 'stop_sequence', stop_sequence: 'END' }],
  [
    'a refusal',
    refused,
    {},
    {
      stop_reason: 'refusal',
      stop_details: { type: 'refusal', category: null, explanation: null },
    },
  ],
  [
    'a content filter',
    answer,
    { reason: 'content-filter' },
    {
      stop_reason: 'refusal',
      stop_details: {
        type: 'refusal',
        category: null,
        explanation: 'The content filter of the upstream ended the output.',
      },
    },
  ],
]

test.each(endings)('%s', (_, blocks, finish, end) => {
  const batches = [generationOf(blocks, finish)]
  const expectedEnd = { stop_sequence: null, stop_details: null, container: null, ...end }
  expect(renderMessage(batches).frames.at(-2)).toMatchObject({
    type: 'message_delta',
    delta: expectedEnd,
  })
  expect(foldMessage(batches)).toMatchObject(expectedEnd)
})

test('output that does not conform to the requested format is a failure', () => {
  const batches = [generationOf(answer, { reason: 'invalid-output' })]
  const { error, message } = renderMessage(batches)
  expect(error).toMatchObject({
    type: 'api_error',
    message: 'The output of the model does not conform to the requested format.',
  })
  expect(message).toMatchObject({ content: [{ text: 'Well then.' }] })
  expect(() => foldMessage(batches)).toThrow(AppError)
})

describe('usage', () => {
  const usageOf = (usage: Finish['usage'], blocks = answer) =>
    foldMessage([generationOf(blocks, { usage })]).usage

  test('counts cached tokens separately from the input', () => {
    expect(usageOf(someUsage)).toMatchObject({
      input_tokens: 10,
      cache_creation_input_tokens: 2,
      cache_read_input_tokens: 8,
      output_tokens: 9,
      output_tokens_details: { thinking_tokens: 4 },
    })
  })

  test('is never negative, and thinking never exceeds the output', () => {
    const odd = { ...someUsage, inputTokens: 3, outputTokens: 1 }
    expect(usageOf(odd)).toMatchObject({
      input_tokens: 0,
      output_tokens: 1,
      output_tokens_details: { thinking_tokens: 1 },
    })
  })

  test('is estimated if the upstream reports none', () => {
    const long = textBlock(0, 'a word and '.repeat(50))
    const { input_tokens, output_tokens, output_tokens_details } = usageOf(null, long) as Record<
      string,
      unknown
    >
    expect(input_tokens).toBe(12)
    expect(output_tokens).toBeGreaterThan(100)
    expect(output_tokens).toBeLessThan(300)
    expect(output_tokens_details).toBeNull()
  })
})
