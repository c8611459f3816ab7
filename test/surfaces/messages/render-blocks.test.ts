import { describe, expect, test } from 'bun:test'
import type { GenerationEvent, HostedToolItem } from '#inference/events.ts'
import type { JsonObject } from '#lib/json.ts'
import { fromToolUseId, toToolUseId } from '#surfaces/messages/tool-id.ts'
import {
  callBlock,
  foldMessage,
  generationOf,
  renderMessage,
  textBlock,
} from '#test/support/message-rendering.ts'
import { testSeals } from '#test/support/sealing.ts'

/** The blocks of the message that these events become, streamed and not. */
function contentOf(
  blocks: readonly GenerationEvent[],
  given: Parameters<typeof renderMessage>[1] = {},
): JsonObject[] {
  const batches = [generationOf(blocks)]
  const { message } = renderMessage(batches, given)
  const content = message?.['content'] as JsonObject[]
  const types = (list: readonly JsonObject[]) => list.map(({ type }) => type)
  expect(types([...foldMessage(batches, given).content])).toEqual(types(content))
  return content
}

const reasoning = (
  pieces: [part: number, text: string][],
  end: { sealed?: string; sealedBy?: string } = {},
  form: { form?: 'summary' } = {},
): GenerationEvent[] => [
  { type: 'reasoning-start', block: 0, ...form },
  ...pieces.map(
    ([part, text]): GenerationEvent => ({ type: 'reasoning-delta', block: 0, part, text }),
  ),
  { type: 'reasoning-end', block: 0, complete: true, ...end },
]

describe('text', () => {
  test('that is empty has no block, so the next block gets its index', () => {
    const blocks = [...textBlock(0), ...textBlock(1, ''), ...callBlock(2, {})]
    expect(contentOf(blocks)).toMatchObject([{ type: 'tool_use' }])
  })

  test('after a tool call is a separate block', () => {
    const blocks = [...textBlock(0, 'a'), ...callBlock(1, {}), ...textBlock(2, 'b')]
    expect(contentOf(blocks)).toMatchObject([{ text: 'a' }, { type: 'tool_use' }, { text: 'b' }])
  })

  test('keeps its web sources; the format has no other ones', () => {
    const [start, delta, end] = textBlock(0, 'So it is.') as [
      GenerationEvent,
      GenerationEvent,
      GenerationEvent,
    ]
    const url = { kind: 'url', url: 'https://a.example', title: 'A', startIndex: 0, endIndex: 2 }
    const file = { kind: 'file', fileId: 'f', filename: 'n', index: 0 }
    const cite = (citation: object) => ({ type: 'citation', block: 0, citation }) as GenerationEvent
    const location = { type: 'web_search_result_location', url: 'https://a.example', title: 'A' }
    const content = contentOf([start, delta, cite(url), cite(file), end])
    expect(content).toEqual([
      {
        type: 'text',
        text: 'So it is.',
        citations: [{ ...location, cited_text: '', encrypted_index: '' }],
      },
    ])
    const folded: unknown = foldMessage([generationOf([start, cite(url), delta, end])]).content
    expect(folded).toEqual(content)
  })

  test('is split after cited passages', () => {
    const passage = (number: number): GenerationEvent => {
      const quoted = { number, text: `text ${number}` }
      const citation = { kind: 'file', fileId: 'f', filename: 'n', index: 0, quoted } as const
      return { type: 'citation', block: 0, citation }
    }
    const say = (text: string): GenerationEvent => ({ type: 'text-delta', block: 0, text })
    const location = (number: number) => ({
      type: 'search_result_location',
      cited_text: `text ${number}`,
      source: '/v1/files/f',
      title: 'n',
      search_result_index: number - 1,
      start_block_index: 0,
      end_block_index: 1,
    })
    const [start, , end] = textBlock(0, '') as [GenerationEvent, GenerationEvent, GenerationEvent]
    const events = [passage(1), say('a'), say('b'), passage(2), passage(3), say('c'), say('')]
    expect(contentOf([start, ...events, end])).toEqual([
      { type: 'text', text: 'ab', citations: [location(1), location(2), location(3)] },
      { type: 'text', text: 'c' },
    ])
  })
})

describe('reasoning', () => {
  const { reasoning: reasoningSeal } = testSeals

  test('is thinking, with a signature that opens to the reasoning', () => {
    const parts: [number, string][] = [
      [0, 'Hm, '],
      [0, 'yes.'],
      [1, 'But no.'],
    ]
    const end = { sealed: 'payload', sealedBy: 'upstream/model' }
    const [block] = contentOf(reasoning(parts, end), { reasoningSeal })
    expect(block).toMatchObject({ type: 'thinking', thinking: 'Hm, yes.\n\nBut no.' })
    expect(reasoningSeal.open(String(block?.['signature']))).toEqual({
      text: 'Hm, yes.\n\nBut no.',
      payload: 'payload',
      maker: 'upstream/model',
    })
  })

  test('that is a summary is returned, and not replayed as reasoning', () => {
    const [block] = contentOf(reasoning([[0, 'Short.']], {}, { form: 'summary' }), {
      reasoningSeal,
    })
    expect(block).toMatchObject({ thinking: 'Short.' })
    expect(reasoningSeal.open(String(block?.['signature']))).toMatchObject({ text: '' })
  })

  test('is a signature without text if the client omits it, or there is none', () => {
    const thinkingDisplay = 'omitted'
    const [omitted] = contentOf(reasoning([[0, 'Hm.']]), { reasoningSeal, thinkingDisplay })
    const [untold] = contentOf(reasoning([], { sealed: 'payload' }), { reasoningSeal })
    for (const block of [omitted, untold]) {
      expect(block).toMatchObject({ type: 'thinking', thinking: '' })
    }
    expect(reasoningSeal.open(String(omitted?.['signature']))).toMatchObject({ text: 'Hm.' })
    expect(reasoningSeal.open(String(untold?.['signature']))).toMatchObject({ payload: 'payload' })
    expect(contentOf([...reasoning([[0, '']]), ...textBlock(1, 'Yes.')])).toHaveLength(1)
  })
})

describe('a tool call', () => {
  test('has an object as its input, whatever its form', () => {
    const cases: [given: Parameters<typeof callBlock>[1], input: object][] = [
      [{ pieces: ['{"city":', '"Oslo"}'] }, { city: 'Oslo' }],
      [{ pieces: [] }, {}],
      [{ pieces: [''] }, {}],
      [{ form: 'custom', pieces: ['say "', '\ud83d', '\ude00\n'] }, { input: 'say "😀\n' }],
      [{ form: 'custom', pieces: [] }, { input: '' }],
    ]
    for (const [given, input] of cases) {
      const block = { type: 'tool_use', id: 'call_0', name: 'get_weather', input }
      expect(contentOf(callBlock(0, given))).toEqual([{ ...block, caller: { type: 'direct' } }])
    }
  })

  test('that was cut off is sent as written, and never repaired', () => {
    const cut = callBlock(0, { pieces: ['{"path":"a","text":"half'], complete: false })
    const batches = [generationOf(cut, { reason: 'length' })]
    const { frames } = renderMessage(batches)
    const pieces = frames.flatMap(({ delta }) => (delta as JsonObject)?.['partial_json'] ?? [])
    expect(pieces).toEqual(['{"path":"a","text":"half'])
    expect(foldMessage(batches).content).toMatchObject([{ input: {} }])
  })

  test('gets an allowed id, which maps back to the original', () => {
    const strange = ['functions.Read:0', 'a b', 'é', '', toToolUseId('x.y'), 'a/b+c=']
    for (const callId of [...strange, 'call_1', 'toolu_01Ab-c']) {
      const [block] = contentOf(callBlock(0, { callId }))
      const id = String(block?.['id'])
      expect(id).toMatch(/^[A-Za-z0-9_-]+$/)
      expect(id === callId).toBe(!strange.includes(callId))
      expect(fromToolUseId(id)).toBe(callId)
    }
    expect(fromToolUseId('toolu_b64_!')).toBe('toolu_b64_!')
  })
})

describe('a hosted tool', () => {
  const hosted = (item: HostedToolItem, ended: HostedToolItem | null): GenerationEvent[] => [
    { type: 'hosted-tool-start', block: 0, item },
    { type: 'hosted-tool-progress', block: 0, stage: 'in_progress' },
    ...(item.type === 'mcp_call'
      ? ([{ type: 'hosted-tool-delta', block: 0, text: '{"q":1}' }] as const)
      : []),
    { type: 'hosted-tool-progress', block: 0, stage: 'calling' },
    { type: 'hosted-tool-end', block: 0, item: ended },
  ]
  const call = { type: 'mcp_call', server_label: 'docs', name: 'find', arguments: '' }

  test('of an MCP server is a call and its result', () => {
    const failed = { type: 'mcp_protocol_error', code: -32_602, message: 'No.' }
    const endings: [ended: object, isError: boolean, text: string][] = [
      [{ output: 'found' }, false, 'found'],
      [{ output: null, error: failed }, true, 'No.'],
      [{ error: { content: [{ type: 'text', text: 'Broken.' }] } }, true, 'Broken.'],
      [{ error: 'Gone.' }, true, 'Gone.'],
    ]
    for (const [ended, isError, text] of endings) {
      const item = { ...call, arguments: '{"q":1}', ...ended }
      const [use, result] = contentOf(hosted(call, item))
      expect(use).toMatchObject({
        type: 'mcp_tool_use',
        name: 'find',
        server_name: 'docs',
        input: { q: 1 },
      })
      expect(result).toEqual({
        type: 'mcp_tool_result',
        tool_use_id: use?.['id'],
        is_error: isError,
        content: [{ type: 'text', text }],
      })
    }
  })

  test('is sent before it has ended, and without a result if it was cut off', () => {
    const shown = generationOf(hosted(call, null))
    const { frames, message } = renderMessage([shown.slice(0, -2), shown.slice(-2)])
    expect(frames.map(({ type }) => type).slice(1, 3)).toEqual([
      'content_block_start',
      'content_block_stop',
    ])
    expect(message?.['content']).toMatchObject([{ type: 'mcp_tool_use', input: { q: 1 } }])
  })

  test('that searched the web is a call and its sources, and is counted', () => {
    const sources = [
      { type: 'url', url: 'https://a.example' },
      { type: 'api', name: 'weather' },
    ]
    const searched = { type: 'web_search_call', action: { type: 'search', query: 'why', sources } }
    const { message } = renderMessage([generationOf(hosted({ type: 'web_search_call' }, searched))])
    expect(message).toMatchObject({
      content: [
        { type: 'server_tool_use', name: 'web_search', input: { query: 'why' } },
        { type: 'web_search_tool_result', content: [{ url: 'https://a.example' }] },
      ],
      usage: { server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 } },
    })
  })

  test('without a block in the format is hidden', () => {
    const opened = { type: 'web_search_call', action: { type: 'open_page', url: 'https://a' } }
    const items: HostedToolItem[] = [
      opened,
      { type: 'file_search_call' },
      { type: 'code_interpreter_call' },
      { type: 'mcp_list_tools' },
      { type: 'mcp_approval_request' },
      { type: 'compaction' },
    ]
    for (const item of items) {
      expect(contentOf([...hosted(item, item), ...textBlock(1, 'So.')])).toMatchObject([
        { text: 'So.' },
      ])
    }
  })
})
