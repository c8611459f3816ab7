import { describe, expect, test } from 'bun:test'
import {
  assistant,
  called,
  itemsOf,
  type Message,
  messageItem,
  parse,
  refusalOfMessages,
  returned,
  text,
  toolResult,
  toolUse,
  user,
} from './parsing.ts'

const expectItems = (...messages: Message[]) => expect<unknown>(itemsOf(...messages))

describe('turns', () => {
  test('of one role are merged if consecutive', () => {
    expectItems(user('One.'), user(text('Two.'), text('Three.')), assistant('Yes.')).toEqual([
      messageItem('user', 'One.', 'Two.', 'Three.'),
      messageItem('assistant', 'Yes.'),
    ])
  })

  test('can begin with the assistant in a truncated conversation', () => {
    expectItems(assistant('Hello.'), user('Hi.')).toEqual([
      messageItem('assistant', 'Hello.'),
      messageItem('user', 'Hi.'),
    ])
  })

  test('of the assistant join texts that citations split', () => {
    const cited = { ...text(' is red'), citations: [{ type: 'char_location' }] }
    expectItems(
      user('?'),
      assistant(text('The sky'), cited, text('.')),
      assistant('Often.'),
    ).toEqual([
      messageItem('user', '?'),
      messageItem('assistant', 'The sky is red.'),
      messageItem('assistant', 'Often.'),
    ])
  })

  test('drop empty texts, and messages without other content', () => {
    expectItems(user(''), user(text(''), text('Hi.')), assistant(''), user(text(''))).toEqual([
      messageItem('user', 'Hi.'),
    ])
    expect(refusalOfMessages(user(''), assistant(text('')))).toBe(
      'messages: must have content for a model',
    )
  })

  test('are prefilled if the last message is the beginning of the output', () => {
    const prefilled = (...messages: Message[]) => parse({ messages }).request.prefilled ?? false
    expect(prefilled(user('Hi.'), assistant('{'))).toBe(true)
    expect(prefilled(user('Hi.'))).toBe(false)
    expect(prefilled(user('Hi.'), assistant(toolUse('a')))).toBe(false)
    expect(prefilled(user('Hi.'), assistant('{'), { role: 'system', content: 'x' })).toBe(false)
  })

  test.each([
    [[], 'messages: must be a non-empty array of objects'],
    [
      Array(21).fill(user('Hi.')),
      'messages: must not have more than 20 messages, calls and results',
    ],
    [
      [assistant(...Array.from({ length: 21 }, (_, index) => toolUse(`a${index}`)))],
      'messages: must not have more than 20 messages, calls and results',
    ],
    [['Hi.'], 'messages.0: must be an object'],
    [[user('Hi.'), { content: 'Hi.' }], 'messages.1.role: is required'],
    [[{ role: 'tool', content: '' }], 'messages.0.role: must be one of user, assistant, system'],
    [[{ role: 'user' }], 'messages.0.content: is required'],
    [[user(1)], 'messages.0.content.0: must be an object'],
    [[user({ text: 'Hi.' })], 'messages.0.content.0.type: is required'],
    [[user(text('Hi.'), { type: 'text' })], 'messages.0.content.1.text: is required'],
    [[user({ type: 'video' })], 'messages.0.content.0.type: is "video", which is not allowed here'],
    [
      [assistant({ type: 'video' })],
      'messages.0.content.0.type: is "video", which is not allowed here',
    ],
    [
      [user({ type: 'thinking' })],
      'messages.0.content.0.type: is "thinking", which is only allowed in assistant messages',
    ],
    [
      [assistant(toolResult('a'))],
      'messages.0.content.0.type: is "tool_result", which is only allowed in user messages',
    ],
  ])('as %j are refused: %s', (messages, message) => {
    expect(refusalOfMessages(...(messages as Message[]))).toBe(message)
  })
})

describe('system messages within a conversation', () => {
  test('keep their position', () => {
    const system = { role: 'system', content: [text('Be brief.'), text(''), text('Be kind.')] }
    expectItems({ role: 'system', content: 'First.' }, user('Hi.'), system, assistant('Yes.'), {
      role: 'system',
      content: '',
    }).toEqual([
      messageItem('system', 'First.'),
      messageItem('user', 'Hi.'),
      messageItem('system', 'Be brief.\n\nBe kind.'),
      messageItem('assistant', 'Yes.'),
    ])
  })

  test('show no tool changes, and allow text only', () => {
    const addition = { type: 'tool_addition', tool: { name: 'look' } }
    const system = { role: 'system', content: [addition, text('Look.')] }
    const parsed = parse({ messages: [user('Hi.'), system] })
    expect<unknown>(parsed.request.items).toEqual([
      messageItem('user', 'Hi.'),
      messageItem('system', 'Look.'),
    ])
    expect(parsed.ignored).toEqual([])
    expect(refusalOfMessages({ role: 'system', content: [text('a'), { type: 'image' }] })).toBe(
      'messages.0.content.1.type: is "image", but only text is allowed here',
    )
  })
})

describe('calls and results', () => {
  test('are separate items, with results before the text of the user', () => {
    expectItems(
      user('Look.'),
      assistant(text('I will.'), toolUse('a', 'look', { at: 'sky' }), toolUse('b')),
      user(text('And?'), toolResult('b', { content: 'dark' })),
      user(toolResult('a', { content: [text('red'), text(''), text('and blue')] })),
    ).toEqual([
      messageItem('user', 'Look.'),
      messageItem('assistant', 'I will.'),
      called('a', 'look', '{"at":"sky"}'),
      called('b'),
      returned('b', 'dark'),
      returned('a', 'red', 'and blue'),
      messageItem('user', 'And?'),
    ])
  })

  test('can have no input, no content, and an error', () => {
    const call = { type: 'tool_use', id: 'a', name: 'look' }
    expectItems(assistant(call), user(toolResult('a', { is_error: true }))).toEqual([
      called('a'),
      { ...returned('a'), isError: true },
    ])
  })

  test('can reuse an id after its result', () => {
    const turn = [assistant(toolUse('a')), user(toolResult('a', { content: 'x' }))]
    expectItems(...turn, ...turn).toEqual([
      called('a'),
      returned('a', 'x'),
      called('a'),
      returned('a', 'x'),
    ])
  })

  test.each([
    [
      [user(toolResult('a'))],
      'messages.0.content.0.tool_use_id: is "a", but no earlier tool_use has this id',
    ],
    [
      [assistant(toolUse('a')), user(toolResult('a'), toolResult('a'))],
      'messages.1.content.1.tool_use_id: is "a", which already has a result',
    ],
    [
      [assistant(toolUse('a'), toolUse('a'))],
      'messages.0.content.1.id: "a" is used twice; ids of tool_use must be unique',
    ],
    [
      [user(toolUse('a'))],
      'messages.0.content.0.type: is "tool_use", which is only allowed in assistant messages',
    ],
    [
      [assistant({ ...toolUse('a'), input: '{}' })],
      'messages.0.content.0.input: must be an object',
    ],
    [[assistant({ type: 'tool_use', name: 'x' })], 'messages.0.content.0.id: is required'],
    [
      [assistant(toolUse('a')), user({ type: 'tool_result' })],
      'messages.1.content.0.tool_use_id: is required',
    ],
    [
      [assistant(toolUse('a')), user(toolResult('a', { content: [{ type: 'video' }] }))],
      'messages.1.content.0.content.0.type: is "video", which is not allowed here',
    ],
  ])('as %j are refused: %s', (messages, message) => {
    expect(refusalOfMessages(...messages)).toBe(message)
  })
})
