import { describe, expect, test } from 'bun:test'
import type { ContentPart, RequestItem, Role } from '#inference/request.ts'
import { createToolNames } from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { encodeMessages } from '#inference/upstreams/chat-completions/messages.ts'
import { defaultQuirks, makeRequest } from '#test/support/generation.ts'

/** System messages after the head, for templates that accept none there. */

function encode(items: RequestItem[], quirks: Partial<UpstreamQuirks> = {}) {
  const request = makeRequest({ items, instructions: 'You are a demo.' })
  const all = { ...defaultQuirks, ...quirks }
  return encodeMessages(request, {
    quirks: all,
    targetName: 'upstream/m',
    toolNames: createToolNames(request),
  }).slice(1)
}

const says = (role: Role, ...parts: (string | ContentPart)[]): RequestItem => ({
  type: 'message',
  role,
  parts: parts.map((part) => (typeof part === 'string' ? { type: 'text', text: part } : part)),
})
const call: RequestItem = {
  type: 'tool-call',
  callId: 'a',
  name: 'look',
  form: 'function',
  arguments: '{}',
}
const result = (...parts: ContentPart[]): RequestItem => ({
  type: 'tool-result',
  callId: 'a',
  form: 'function',
  parts,
})
const text = (words: string): ContentPart => ({ type: 'text', text: words })
const image: ContentPart = { type: 'image', url: 'data:image/png;base64,AA==', detail: null }
const wireImage = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AA==' } }
const wireCall = { id: 'a', type: 'function', function: { name: 'look', arguments: '{}' } }
const late = (words: string) => `[System instruction]\n${words}`

describe('a late system text', () => {
  test('is appended to the preceding user message', () => {
    const items = [says('user', 'Hi.'), says('system', 'Be brief.'), says('developer', 'Be kind.')]
    expect(encode([...items, says('assistant', 'Yes.')])).toEqual([
      { role: 'user', content: `Hi.\n\n${late('Be brief.')}\n\n${late('Be kind.')}` },
      { role: 'assistant', content: 'Yes.' },
    ])
  })

  test('is appended as its own part to a user message with images', () => {
    expect(encode([says('user', 'Look:', image), says('system', 'Be brief.')])).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look:' },
          wireImage,
          { type: 'text', text: late('Be brief.') },
        ],
      },
    ])
  })

  test('is appended to the last result of a turn of only results', () => {
    const calls = { role: 'assistant' as const, content: '', tool_calls: [wireCall] }
    const behind = encode([call, result(text('red')), says('system', 'Be brief.')])
    expect<unknown>(behind).toEqual([
      calls,
      { role: 'tool', tool_call_id: 'a', content: `red\n\n${late('Be brief.')}` },
    ])
    // No message may separate a call from its result.
    expect(encode([call, says('system', 'Be brief.'), result(text('red'))])).toEqual(behind)
    expect<unknown>(encode([call, result(), says('system', 'Be brief.')])[1]).toEqual({
      role: 'tool',
      tool_call_id: 'a',
      content: late('Be brief.'),
    })
  })

  test('is appended to attachments or user text after the results', () => {
    const shown = encode([call, result(image), says('system', 'Be brief.')]).at(-1)
    expect(shown).toEqual({
      role: 'user',
      content: [
        { type: 'text', text: '[Returned by the tool look]' },
        wireImage,
        { type: 'text', text: late('Be brief.') },
      ],
    })
    const said = [call, result(text('red')), says('user', 'And?'), says('system', 'Be brief.')]
    expect(encode(said).at(-1)).toEqual({
      role: 'user',
      content: `And?\n\n${late('Be brief.')}`,
    })
  })

  test('after an assistant message joins the next user message', () => {
    const items = [says('user', 'Hi.'), says('assistant', 'Yes.'), says('system', 'Be brief.')]
    expect(encode([...items, says('user', 'And?')]).slice(2)).toEqual([
      { role: 'user', content: `${late('Be brief.')}\n\nAnd?` },
    ])
    expect(encode([...items, says('user', image)]).slice(2)).toEqual([
      { role: 'user', content: [{ type: 'text', text: late('Be brief.') }, wireImage] },
    ])
  })

  test('becomes a user message if no user message follows before the assistant', () => {
    const items = [says('user', 'Hi.'), says('assistant', 'Yes.'), says('system', 'Be brief.')]
    const own = { role: 'user' as const, content: late('Be brief.') }
    expect(encode(items).slice(2)).toEqual([own])
    expect(encode([...items, says('assistant', 'So?')]).slice(2)).toEqual([
      own,
      { role: 'assistant', content: 'So?' },
    ])
  })

  test('an empty one changes nothing', () => {
    const items = [says('user', 'Hi.'), says('system', '')]
    expect(encode(items)).toEqual([{ role: 'user', content: 'Hi.' }])
  })

  test('keeps its position if the template accepts it', () => {
    const items = [says('user', 'Hi.'), says('developer', 'Be brief.')]
    const quirks = { lateSystemMessages: true }
    expect(encode(items, quirks)[1]).toEqual({ role: 'system', content: 'Be brief.' })
    expect(encode(items, { ...quirks, developerRole: true })[1]).toEqual({
      role: 'developer',
      content: 'Be brief.',
    })
  })
})
