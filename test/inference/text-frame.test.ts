import { expect, test } from 'bun:test'
import { learnText, newTextFrame, readText, type TextFrame } from '#inference/text-frame.ts'

const chunk = (text: string) => JSON.stringify({ id: 'a', delta: { text }, more: [1, 'b'] })

function learnt(json: string, text: string): TextFrame {
  const frame = { ...newTextFrame }
  learnText(frame, json, { field: 'text', text })
  learnText(frame, json, { field: 'text', text })
  return frame
}

test('the text of a similar message is found', () => {
  const frame = learnt(chunk('one'), 'one')
  for (const text of ['two', '', '"', '\\', '\n\u2028\ud83d\ude00', '"},{"', '\ud800']) {
    expect(readText(frame, chunk(text))).toBe(text)
  }
  expect(readText(frame, '{"id":"a","delta":{"text":"\\u00e9\\/"},"more":[1,"b"]}')).toBe('é/')
})

test('white space and escapes are supported', () => {
  const frame = learnt('{ "text" : "a\\u0062" , "n": 1 }', 'ab')
  expect(readText(frame, '{ "text" : "c" , "n": 1 }')).toBe('c')
  expect(readText(frame, '{ "text": "c" , "n": 1 }')).toBeNull()
})

test('the first message is not learnt', () => {
  const frame = { ...newTextFrame }
  learnText(frame, chunk('one'), { field: 'text', text: 'one' })
  expect(readText(frame, chunk('two'))).toBeNull()
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
    expect(readText(frame, other)).toBeNull()
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
    expect(readText(learnt(json, 'a'), json)).toBeNull()
  }
})

test('a message that cannot be learnt resets the cache', () => {
  const frame = learnt(chunk('one'), 'one')
  learnText(frame, '{"text":"b","t\\u0065xt":"a"}', { field: 'text', text: 'a' })
  expect(readText(frame, chunk('two'))).toBeNull()
})

test('learning stops if every message differs', () => {
  const frame = learnt('', '')
  const json = (text: string, number: number) => JSON.stringify({ text, number })
  for (let number = 1; number < 16; number++) {
    learnText(frame, json('a', number), { field: 'text', text: 'a' })
    expect(readText(frame, json('b', -1))).toBeNull()
  }
  learnText(frame, json('a', 16), { field: 'text', text: 'a' })
  expect(readText(frame, json('b', 16))).toBeNull()
})
