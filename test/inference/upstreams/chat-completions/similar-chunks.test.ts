import { expect, test } from 'bun:test'
import { readPlainText } from '#inference/upstreams/chat-completions/read.ts'
import { callDelta, chunk, decodeBytes, decodePayloads } from '#test/support/chat-decoding.ts'
import { createDice } from '#test/support/dice.ts'

const words = ['a', ' b', '"', '\\', '\n\n', '<think>', '</think>', '[1]', '', 'ž', '\u2028']

/** Random streams of mostly text, in which consecutive chunks are often similar. */
function drawStream(dice: ReturnType<typeof createDice>): object[] {
  const word = () => words[dice.upTo(words.length)] ?? ''
  const more = dice.upTo(3) === 0 ? { citations: ['https://a.example'] } : {}
  const drawn = Array.from({ length: 30 }, (_, number) => {
    switch (dice.upTo(14)) {
      case 0:
        return chunk({ reasoning_content: word() }, null, more)
      case 1:
        return chunk({ reasoning: word(), reasoning_content: word() })
      case 2:
        return chunk({ content: word(), refusal: word() })
      case 3:
        return chunk({ content: word(), tool_calls: [] }, null, more)
      case 4:
        return chunk(callDelta([number, `call_${number}`, 'look', word()]))
      case 5:
        return chunk({ content: word() }, null, { usage: { prompt_tokens: dice.upTo(3) } })
      case 6:
        return { ...chunk({ content: word() }), choices: [] }
      default:
        return chunk({ content: word() }, null, more)
    }
  })
  return [...drawn, chunk({ content: word() }, dice.upTo(2) === 0 ? 'stop' : 'length'), chunk({})]
}

test('similar chunks decode as they do individually', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const stream = drawStream(createDice(seed))
    const options = { thinkTags: seed % 2 === 0, logprobs: seed % 5 === 0 }
    // A number in each makes consecutive chunks differ.
    const unlike = stream.map((payload, number) => ({ ...payload, number }))
    const alone = decodePayloads([...unlike, '[DONE]'], options)
    expect(decodePayloads([...stream, '[DONE]'], options)).toEqual(alone)
  }
})

const text = chunk({ content: 'a' })
const texts = [text, text, text]

test('text after the end of a response is ignored, though it is similar', () => {
  const { events, error } = decodePayloads([...texts, chunk({}, 'stop'), text, '[DONE]'])
  expect(error).toBeNull()
  expect(events.filter(({ type }) => type === 'text-delta')).toHaveLength(3)
})

test("text in a vendor's event is ignored, though it is similar", () => {
  const line = (payload: object) => `data: ${JSON.stringify({ ...payload, object: 'x' })}\n\n`
  const stream = [...texts.map(line), `event: vendor\n${line(text)}`, line(chunk({}, 'stop'))]
  const { events, error } = decodeBytes([Buffer.from(stream.join(''))])
  expect(error).toBeNull()
  expect(events.filter(({ type }) => type === 'text-delta')).toHaveLength(3)
})

const choice = (fields: object) => ({ choices: [{ index: 0, ...fields }] })

test.each([
  ['content', choice({ delta: { content: 'a' } })],
  ['reasoning_content', choice({ delta: { reasoning_content: 'a' } })],
  ['reasoning', choice({ delta: { reasoning: 'a', content: null } })],
  ['thinking', choice({ delta: { thinking: 'a', content: '', tool_calls: [] }, message: null })],
])('a chunk with %s alone is plain text', (field, payload) => {
  expect(readPlainText(payload)).toEqual({ field, text: 'a' } as never)
})

const plain = { delta: { content: 'a' } }

test.each([
  {},
  { choices: [] },
  { choices: ['a'] },
  { choices: [plain, plain] },
  choice({ delta: 'a' }),
  choice({ delta: {} }),
  choice({ delta: { content: ['a'] } }),
  choice({ delta: { content: 'a', reasoning: 'b' } }),
  choice({ ...plain, finish_reason: 'stop' }),
  choice({ ...plain, message: { content: 'a' } }),
  ...[
    'refusal',
    'tool_calls',
    'function_call',
    'annotations',
    'images',
    'audio',
    'reasoning_details',
    'extra_content',
  ].map((name) => choice({ delta: { content: 'a', [name]: [{}] } })),
])('%j is no plain text', (payload) => {
  expect(readPlainText(payload)).toBeNull()
})
