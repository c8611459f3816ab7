import { expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import type { FunctionTool } from '#inference/request.ts'
import { createToolNames } from '#inference/tools.ts'
import { failureOf, LlamaDecoder } from '#inference/upstreams/llama/decode.ts'
import type { Ending, Piece } from '#inference/upstreams/llama/wire.ts'
import { makeRequest } from '#test/support/generation.ts'
import { createGrammar } from '#test/support/grammar.ts'

const look: FunctionTool = {
  type: 'function',
  name: 'look',
  description: null,
  parameters: null,
  strict: null,
}
const tokens = { input: 5, cached: 3, output: 4, thinking: 2 }
type Finished = Extract<Ending, { type: 'finished' }>

/** The events that every response has, in order. */
function decode(pieces: readonly Piece[], ending: Partial<Finished> = {}) {
  const tools = [look, { ...look, type: 'custom', name: 'write', grammar: null } as const]
  const toolNames = createToolNames(makeRequest({ tools }))
  const decoder = new LlamaDecoder({
    toolNames,
    takenCallIds: new Set(),
    toolArgumentCharsMax: 1_000,
  })
  const events: GenerationEvent[] = [{ type: 'generation-start' }]
  for (const piece of pieces) decoder.read(piece, events)
  decoder.finish({ type: 'finished', reason: 'stop', tokens, ...ending }, events)
  const grammar = createGrammar()
  for (const event of events) grammar.check(event)
  grammar.end()
  return events.slice(1)
}

const call = (index: number, name: string, text: string): Piece => ({
  type: 'call',
  call: index,
  name,
  text,
})

test('thinking, comments and text are separate blocks', () => {
  const events = decode([
    { type: 'thought', text: 'Hm' },
    { type: 'thought', text: '.' },
    { type: 'comment', text: 'I look.' },
    { type: 'text', text: 'Done.' },
  ])
  expect(events).toEqual([
    { type: 'reasoning-start', block: 0 },
    { type: 'reasoning-delta', block: 0, part: 0, text: 'Hm' },
    { type: 'reasoning-delta', block: 0, part: 0, text: '.' },
    { type: 'reasoning-end', block: 0, complete: true },
    { type: 'text-start', block: 1, form: 'answer', phase: 'commentary' },
    { type: 'text-delta', block: 1, text: 'I look.' },
    { type: 'text-end', block: 1, complete: true },
    { type: 'text-start', block: 2, form: 'answer' },
    { type: 'text-delta', block: 2, text: 'Done.' },
    { type: 'text-end', block: 2, complete: true },
    {
      type: 'finish',
      reason: 'stop',
      rawReason: null,
      usage: {
        inputTokens: 5,
        cachedTokens: 3,
        cacheWriteTokens: 0,
        outputTokens: 4,
        reasoningTokens: 2,
        totalTokens: 9,
      },
    },
  ])
})

test('calls are sequential, and a custom call yields its text', () => {
  const pieces = [
    call(0, 'look', '{"a"'),
    call(0, 'look', ':1}'),
    call(1, 'look', '{}'),
    call(2, 'write', '{"input":"words"}'),
  ]
  const events = decode([{ type: 'text', text: 'I look.' }, ...pieces], { reason: 'tool-calls' })
  const inputs = new Map<number, string>()
  for (const event of events) {
    if (event.type !== 'tool-call-delta') continue
    inputs.set(event.block, (inputs.get(event.block) ?? '') + event.text)
  }
  expect([...inputs.values()]).toEqual(['{"a":1}', '{}', 'words'])
  const heads = events.flatMap((event) => (event.type === 'tool-call-start' ? [event.call] : []))
  expect(heads.map(({ name, form }) => [name, form])).toEqual([
    ['look', 'function'],
    ['look', 'function'],
    ['write', 'custom'],
  ])
})

test('truncated output is incomplete', () => {
  const reason = 'length'
  expect(decode([{ type: 'text', text: 'Do' }], { reason }).at(-2)).toMatchObject({
    type: 'text-end',
    complete: false,
  })
  expect(decode([call(0, 'look', '{"a')], { reason }).at(-2)).toMatchObject({
    type: 'tool-call-end',
    complete: false,
  })
})

test('a response may be empty', () => {
  expect(decode([]).map(({ type }) => type)).toEqual(['finish'])
})

test.each([
  ['refused', 'overflow', 'context_length_exceeded', 'too long'],
  ['refused', 'prompt', 'invalid_request', 'too long'],
  ['failed', '', 'upstream_error', 'The model failed.'],
])('%s %s is an error of its kind', (type, reason, kind, words) => {
  const failure = failureOf({ type, reason, message: 'too long' } as Ending)
  expect(failure.kind).toBe(kind as typeof failure.kind)
  expect(failure.message).toContain(words)
})

test('a stop sequence is reported, and output at a stop is whole', () => {
  const ended = { reason: 'stop-sequence', stopSequence: 'END' } as const
  const events = decode([{ type: 'text', text: 'Do' }], ended)
  expect(events.at(-2)).toMatchObject({ type: 'text-end', complete: true })
  expect(events.at(-1)).toMatchObject(ended)
  expect(decode([]).at(-1)).not.toHaveProperty('stopSequence')
})
