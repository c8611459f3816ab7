import { describe, expect, test } from 'bun:test'
import type { GenerationRequest } from '#inference/request.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { always, body } from './requests.ts'

const inputOf = (items: GenerationRequest['items'], others: Partial<UpstreamQuirks> = {}) => ({
  is: (...input: unknown[]) => expect(body({ items }, others)).toEqual({ ...always, input }),
})

describe('items', () => {
  test('messages with every part type of a user', () => {
    inputOf([
      {
        type: 'message',
        role: 'user',
        parts: [
          { type: 'text', text: 'Look:' },
          { type: 'image', url: 'https://a.test/a.png', detail: null },
          { type: 'image', url: 'data:image/png;base64,AA==', detail: 'high' },
          { type: 'file', data: 'data:application/pdf;base64,AA==', url: null, filename: 'a.pdf' },
          { type: 'file', data: null, url: 'https://a.test/a.pdf', filename: null },
        ],
      },
    ]).is({
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'Look:' },
        { type: 'input_image', image_url: 'https://a.test/a.png', detail: 'auto' },
        { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'high' },
        {
          type: 'input_file',
          file_data: 'data:application/pdf;base64,AA==',
          filename: 'a.pdf',
        },
        { type: 'input_file', file_url: 'https://a.test/a.pdf' },
      ],
    })
  })

  test('system and developer messages keep their position', () => {
    const items: GenerationRequest['items'] = [
      { type: 'message', role: 'system', parts: [{ type: 'text', text: 'S' }] },
      { type: 'message', role: 'developer', parts: [{ type: 'text', text: 'D' }] },
    ]
    const [system, developer] = [{ text: 'S' }, { text: 'D' }].map(({ text }) => ({
      type: 'message',
      content: [{ type: 'input_text', text }],
    }))
    inputOf(items).is({ ...system, role: 'system' }, { ...developer, role: 'developer' })
    inputOf(items, { developerRole: false }).is(
      { ...system, role: 'system' },
      { ...developer, role: 'system' },
    )
  })

  test('assistant messages: one text as a string, more as parts, with their phase', () => {
    inputOf([
      {
        type: 'message',
        role: 'assistant',
        phase: 'final_answer',
        parts: [{ type: 'text', text: 'Yes.' }],
      },
      {
        type: 'message',
        role: 'assistant',
        parts: [
          { type: 'text', text: 'Well.' },
          { type: 'refusal', text: 'No.' },
        ],
      },
      { type: 'message', role: 'assistant', parts: [] },
    ]).is(
      { type: 'message', role: 'assistant', content: 'Yes.', phase: 'final_answer' },
      {
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [
          { type: 'output_text', text: 'Well.', annotations: [] },
          { type: 'refusal', refusal: 'No.' },
        ],
      },
      { type: 'message', role: 'assistant', content: '' },
    )
  })

  test('calls and their results, of both forms', () => {
    inputOf([
      {
        type: 'tool-call',
        callId: 'call_1',
        name: 'add',
        namespace: 'math',
        form: 'function',
        arguments: '{"a":1}',
      },
      { type: 'tool-call', callId: 'call_2', name: 'sql', form: 'custom', arguments: 'select 1' },
      {
        type: 'tool-result',
        callId: 'call_1',
        form: 'function',
        parts: [{ type: 'text', text: '2' }],
      },
      { type: 'tool-result', callId: 'call_2', form: 'custom', parts: [] },
      {
        type: 'tool-result',
        callId: 'call_3',
        form: 'function',
        parts: [
          { type: 'text', text: 'See:' },
          { type: 'image', url: 'https://a.test/a.png', detail: 'low' },
        ],
      },
    ]).is(
      {
        type: 'function_call',
        call_id: 'call_1',
        name: 'add',
        namespace: 'math',
        arguments: '{"a":1}',
      },
      { type: 'custom_tool_call', call_id: 'call_2', name: 'sql', input: 'select 1' },
      { type: 'function_call_output', call_id: 'call_1', output: '2' },
      { type: 'custom_tool_call_output', call_id: 'call_2', output: '' },
      {
        type: 'function_call_output',
        call_id: 'call_3',
        output: [
          { type: 'input_text', text: 'See:' },
          { type: 'input_image', image_url: 'https://a.test/a.png', detail: 'low' },
        ],
      },
    )
  })

  test('reasoning is sent sealed, else as text, and dropped if empty', () => {
    const items: GenerationRequest['items'] = [
      { type: 'reasoning', summary: ['One.', 'Two.'], text: '', sealed: '' },
      { type: 'reasoning', summary: ['One.'], text: 'All of it.' },
      { type: 'reasoning', summary: [], text: '' },
    ]
    const [one, two] = ['One.', 'Two.'].map((text) => ({ type: 'summary_text', text }))
    inputOf(items).is(
      {
        type: 'reasoning',
        summary: [one, two],
        content: [{ type: 'reasoning_text', text: 'One.\n\nTwo.' }],
      },
      {
        type: 'reasoning',
        summary: [one],
        content: [{ type: 'reasoning_text', text: 'All of it.' }],
      },
    )
    inputOf(items, { reasoningFields: [] }).is()
    const sealed = { type: 'reasoning', summary: ['One.'], text: 'One.', sealed: 'gAAA' } as const
    expect(body({ items: [sealed] })).toEqual({
      ...always,
      input: [{ type: 'reasoning', summary: [one], encrypted_content: 'gAAA' }],
      include: ['reasoning.encrypted_content'],
    })
  })

  test('sealed reasoning is sent only to its target, and its payload requested only for reasoning', () => {
    const sealedBy = (maker: string) =>
      body({
        items: [{ type: 'reasoning', summary: [], text: 'One.', sealed: 'gAAA', sealedBy: maker }],
      })
    expect(sealedBy('upstream/m')).toMatchObject({ input: [{ encrypted_content: 'gAAA' }] })
    for (const maker of ['upstream/other', 'other/m']) {
      expect(sealedBy(maker)).toEqual({ ...always, input: [] })
    }
  })
})
