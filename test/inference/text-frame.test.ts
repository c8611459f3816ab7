import { expect, test } from 'bun:test'
import { TextFrame } from '#inference/text-frame.ts'

const chunk = (text: string) => JSON.stringify({ id: 'a', delta: { text }, more: [1, 'b'] })

function learnt(json: string, text: string): TextFrame {
  const frame = new TextFrame()
  frame.learn(json, 'text', text)
  frame.learn(json, 'text', text)
  return frame
}

test('the text of a similar message is found', () => {
  const frame = learnt(chunk('one'), 'one')
  for (const text of ['two', '', '"', '\\', '\n\u2028\ud83d\ude00', '"},{"', '\ud800']) {
    expect(frame.read(chunk(text))).toBe(text)
  }
  expect(frame.read('{"id":"a","delta":{"text":"\\u00e9\\/"},"more":[1,"b"]}')).toBe('é/')
})

test('white space and escapes are supported', () => {
  const frame = learnt('{ "text" : "a\\u0062" , "n": 1 }', 'ab')
  expect(frame.read('{ "text" : "c" , "n": 1 }')).toBe('c')
  expect(frame.read('{ "text": "c" , "n": 1 }')).toBeNull()
})

test('the first message is not learnt', () => {
  const frame = new TextFrame()
  frame.learn(chunk('one'), 'text', 'one')
  expect(frame.read(chunk('two'))).toBeNull()
})

test('a message that differs in more than the text does not match', () => {
  const frame = learnt(chunk('one'), 'one')
  for (const other of [
    chunk('two').replace('"a"', '"b"'),
    chunk('two').replace('1', '2'),
    '{"id":"a","delta":{"text":"two","text":"three"},"more":[1,"b"]}',
    '{"id":"a","delta":{"text":1},"more":[1,"b"]}',
    '{"id":"a","delta":{"text":"},"more":[1,"b"]}',
    '{"id":"a","delta":{"text":"two","x":"y"},"more":[1,"b"]}',
    '{"id":"a","delta":{"text":"tw\no"},"more":[1,"b"]}',
    '{"id":"a","delta":{"text":\n"two"},"more":[1,"b"]}',
    '{"id":"a","delta":{"text":"two"\n},"more":[1,"b"]}',
    '{"id":"a","delta":{"text":',
    '"},"more":[1,"b"]}',
    '',
  ]) {
    expect(frame.read(other)).toBeNull()
  }
})

test('a message with an ambiguous text position is not learnt', () => {
  for (const json of [
    '{"text":"a","more":{"text":"a"}}',
    '{"text":"b","t\\u0065xt":"a"}',
    '{"note":"\\"","text":"a"}',
    '{"say":"a"}',
    '{"text":["a"]}',
  ]) {
    expect(learnt(json, 'a').read(json)).toBeNull()
  }
})

test('a message that cannot be learnt resets the cache', () => {
  const frame = learnt(chunk('one'), 'one')
  frame.learn('{"text":"b","t\\u0065xt":"a"}', 'text', 'a')
  expect(frame.read(chunk('two'))).toBeNull()
})

test('learning stops if every message differs', () => {
  const frame = learnt('', '')
  const json = (text: string, number: number) => JSON.stringify({ text, number })
  for (let number = 1; number < 16; number++) {
    frame.learn(json('a', number), 'text', 'a')
    expect(frame.read(json('b', -1))).toBeNull()
  }
  frame.learn(json('a', 16), 'text', 'a')
  expect(frame.read(json('b', 16))).toBeNull()
})
