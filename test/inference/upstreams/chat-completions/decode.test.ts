import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { GenerationEvent } from '#inference/events.ts'
import {
  callDelta,
  chunk,
  type DecodingOptions,
  decodeBytes,
  decodePayloads,
} from '#test/support/chat-decoding.ts'
import { mergeDeltas } from '#test/support/generation.ts'

const fixtures = join(import.meta.dir, '../../../fixtures/chat-completions')

/** The content of a fixture stream, one line per block. */
function readFixture(name: string, options?: DecodingOptions): string[] {
  const { events, error } = decodeBytes([readFileSync(join(fixtures, `${name}.sse`))], options)
  expect(error).toBeNull()
  return tell(events)
}

/** Each block as a line: its type and content, with `…` if it is incomplete. */
function tell(events: readonly GenerationEvent[]): string[] {
  const lines: string[] = []
  let line = ''
  for (const event of mergeDeltas(events)) {
    if (event.type === 'tool-call-start') line = `call ${event.call.name}: `
    else if (event.type === 'text-start') line = `${event.form}: `
    else if (event.type === 'reasoning-start') line = 'reasoning: '
    else if ('text' in event) line += event.text
    else if ('complete' in event) lines.push(event.complete ? line : `${line}…`)
    else if (event.type === 'finish') lines.push(`finish ${event.reason}`)
  }
  return lines
}

const finishOf = (events: readonly GenerationEvent[]) =>
  events.find((event) => event.type === 'finish')

describe('text', () => {
  test('the first chunk with only a role opens no block', () => {
    const { events } = decodePayloads([chunk({ role: 'assistant', content: '' })])
    expect(events).toEqual([{ type: 'generation-start' }])
    const withNull = decodePayloads([chunk({ role: 'assistant', content: null })])
    expect(withNull.events).toEqual([{ type: 'generation-start' }])
  })

  test('a chunk without choices opens no block', () => {
    const filters = { choices: [], prompt_filter_results: [{ prompt_index: 0 }] }
    const { events, error } = decodePayloads([filters, chunk({ content: 'Hi' }, 'stop'), '[DONE]'])
    expect(error).toBeNull()
    expect(tell(events)).toEqual(['answer: Hi', 'finish stop'])
  })

  test('choices other than the first are ignored', () => {
    const other = { choices: [{ index: 1, delta: { content: 'no' }, finish_reason: 'stop' }] }
    const { events } = decodePayloads([other, chunk({ content: 'yes' }, 'stop'), '[DONE]'])
    expect(tell(events)).toEqual(['answer: yes', 'finish stop'])
  })

  test('leading whitespace is held until text follows', () => {
    const { events } = decodePayloads([
      chunk({ content: '\n' }),
      chunk({ content: ' \n' }),
      chunk({ content: 'Hi' }, 'stop'),
    ])
    expect(tell(events)).toEqual(['answer: \n \nHi', 'finish stop'])
  })

  test('whitespace beyond the limit is emitted', () => {
    for (const thinkTags of [false, true]) {
      const endless = Array(3_000).fill(chunk({ content: '\n' }))
      const { events } = decodePayloads(endless, { thinkTags })
      expect(events.some((event) => event.type === 'text-delta')).toBe(true)
    }
  })

  test('content in parts is read in order', () => {
    const content = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'Hm. ' }] },
      { type: 'thinking', thinking: 'So.' },
      { type: 'reference', reference_ids: [1] },
      { type: 'text', text: 'Yes' },
    ]
    const { events } = decodePayloads([chunk({ content }, 'stop')])
    expect(tell(events)).toEqual(['reasoning: Hm. So.', 'answer: Yes', 'finish stop'])
  })

  test('a refusal is a block of its own form', () => {
    expect(readFixture('refusal')).toEqual(['refusal: I will not.', 'finish stop'])
  })

  test('a response with CR LF, comments and multi-line JSON is decoded', () => {
    expect(readFixture('crlf-and-comments')).toEqual(['answer: Hello wörld', 'finish stop'])
  })
})

describe('reasoning', () => {
  test('reasoning in both fields counts once, and whitespace before a call is dropped', () => {
    expect(readFixture('reasoning-twice-named')).toEqual([
      'reasoning: I should look.',
      'call look: {"x":1}',
      'finish tool-calls',
    ])
  })

  test('empty and blank reasoning opens no block', () => {
    const { events } = decodePayloads([
      chunk({ reasoning_content: '', reasoning: '' }),
      chunk({ reasoning: '\n' }),
      chunk({ content: 'Hi' }, 'stop'),
    ])
    expect(tell(events)).toEqual(['answer: Hi', 'finish stop'])
  })

  test('reasoning after text is a new block', () => {
    expect(readFixture('interleaved-reasoning')).toEqual([
      'reasoning: First thought.',
      'answer: First answer.',
      'reasoning: Second thought.',
      'answer: \nSecond answer.',
      'finish stop',
    ])
  })

  test('think tags are removed for upstreams with that quirk', () => {
    expect(readFixture('think-tags', { thinkTags: true })).toEqual([
      'reasoning: Is 1 < 2? Yes.',
      'answer: Yes, and <think> is a tag.',
      'finish stop',
    ])
    expect(readFixture('think-tags')[0]).toStartWith('answer: \n<think>')
  })

  test('empty think tags yield no reasoning, unclosed ones only reasoning', () => {
    const thinkTags = true
    const empty = decodePayloads([chunk({ content: '<think>\n\n</think>\n\nHi' }, 'stop')], {
      thinkTags,
    })
    expect(tell(empty.events)).toEqual(['answer: Hi', 'finish stop'])
    const open = decodePayloads([chunk({ content: '<think>Hm </thi' }, 'length')], { thinkTags })
    expect(tell(open.events)).toEqual(['reasoning: Hm </thi…', 'finish length'])
    const almost = decodePayloads([chunk({ content: '<thin' }, 'stop')], { thinkTags })
    expect(tell(almost.events)).toEqual(['answer: <thin', 'finish stop'])
  })
})

describe('tool calls', () => {
  test('calls that all have index 0 are distinguished by their ids', () => {
    expect(readFixture('every-call-index-0')).toEqual([
      'call look: {"x":1}',
      'call find: {"y":"zwei"}',
      'finish tool-calls',
    ])
  })

  test('several calls in one delta with alternating arguments do not overlap', () => {
    expect(readFixture('interleaved-calls')).toEqual([
      'answer: Two calls.',
      'call look: {"x":1}',
      'call find: {"y":"a}"}',
      'finish tool-calls',
    ])
  })

  test('arguments sent as a value become JSON text, missing ones an empty object', () => {
    expect(readFixture('arguments-as-objects')).toEqual([
      'call look: {"x":1,"y":["ä",null]}',
      'call now: {}',
      'finish tool-calls',
    ])
  })

  test('the legacy function_call is a tool call', () => {
    expect(readFixture('legacy-function-call')).toEqual(['call look: {"x":1}', 'finish tool-calls'])
  })

  test('a call in the legacy field beside `tool_calls` is the same call', () => {
    const both = {
      ...callDelta([0, 'a', 'look', '{}']),
      function_call: { name: 'look', arguments: '{}' },
    }
    const { events } = decodePayloads([chunk(both, 'stop')])
    expect(tell(events)).toEqual(['call look: {}', 'finish tool-calls'])
    expect(events).toContainEqual(
      expect.objectContaining({ call: expect.objectContaining({ callId: 'a' }) }),
    )
  })

  test('a call is incomplete if the output limit truncated it', () => {
    expect(readFixture('cut-call')).toEqual([
      'call look: {"x":1}',
      'call find: {"y":"hal…',
      'finish length',
    ])
  })

  test('text after a call ends the call', () => {
    const { events } = decodePayloads([
      chunk(callDelta([0, 'a', 'look', '{"x":1}'])),
      chunk({ content: 'Done.' }),
      chunk({}, 'stop'),
    ])
    expect(tell(events)).toEqual(['call look: {"x":1}', 'answer: Done.', 'finish tool-calls'])
  })

  test('an empty call opens no block', () => {
    const { events } = decodePayloads([
      chunk(callDelta([0, null, null, null])),
      chunk({ content: 'Hi' }, 'stop'),
    ])
    expect(tell(events)).toEqual(['answer: Hi', 'finish stop'])
  })

  test('calls of namespaced and custom tools get their original names', () => {
    const parameters = { type: 'object' }
    const { events } = decodePayloads(
      [
        chunk(
          callDelta([0, 'a', 'files__read', '{}'], [1, 'b', 'shell', '{"input":"ls"}']),
          'stop',
        ),
      ],
      {
        request: {
          tools: [
            {
              type: 'function',
              namespace: 'files',
              name: 'read',
              description: null,
              parameters,
              strict: null,
            },
            { type: 'custom', name: 'shell', description: null, grammar: null },
          ],
        },
      },
    )
    const heads = events.flatMap((event) => (event.type === 'tool-call-start' ? [event.call] : []))
    expect(heads).toEqual([
      { callId: 'a', name: 'read', namespace: 'files', form: 'function' },
      { callId: 'b', name: 'shell', form: 'custom' },
    ])
    expect(tell(events)).toContain('call shell: ls')
  })

  test('a call outside the allowed tools fails the generation', () => {
    const tool = { type: 'function', description: null, parameters: null, strict: null } as const
    const tools = [
      { ...tool, name: 'look' },
      { ...tool, name: 'find' },
    ]
    const toolChoice = { type: 'allowed', mode: 'auto', tools: [{ name: 'look' }] } as const
    const call = chunk(callDelta([0, 'a', 'find', '{}']), 'stop')
    const { events, error } = decodePayloads([call], { request: { tools, toolChoice } })
    expect(error?.kind).toBe('upstream_invalid_answer')
    expect(events).toEqual([{ type: 'generation-start' }])
    const none = decodePayloads([call], { request: { tools, toolChoice: { type: 'none' } } })
    expect(none.error?.kind).toBe('upstream_invalid_answer')
  })
})

describe('a whole message', () => {
  test('a final message that repeats the deltas is not emitted again', () => {
    expect(readFixture('message-in-last-chunk')).toEqual(['answer: Hello world.', 'finish stop'])
  })

  test('a final message that repeats a legacy call adds none', () => {
    const call = { function_call: { name: 'look', arguments: '{}' } }
    const last = { choices: [{ index: 0, message: call, finish_reason: 'function_call' }] }
    const { events } = decodePayloads([chunk(call), last])
    expect(tell(events)).toEqual(['call look: {}', 'finish tool-calls'])
  })

  test('a final message adds content that was not streamed', () => {
    const message = { content: 'Hi', ...callDelta([null, 'a', 'look', '{}']) }
    const last = { choices: [{ index: 0, message, delta: {}, finish_reason: 'tool_calls' }] }
    const { events } = decodePayloads([chunk({ content: 'Hi' }), last])
    expect(tell(events)).toEqual(['answer: Hi', 'call look: {}', 'finish tool-calls'])
  })
})

test('usage may arrive anywhere, and the latest counts', () => {
  const { events } = decodeBytes([readFileSync(join(fixtures, 'usage-everywhere.sse'))])
  expect(tell(events)).toEqual(['answer: Grüße 🎉 字', 'finish stop'])
  expect(finishOf(events)?.usage).toEqual({
    inputTokens: 5,
    cachedTokens: 4,
    cacheWriteTokens: 0,
    outputTokens: 3,
    reasoningTokens: 0,
    totalTokens: 8,
  })
})
