import { expect, test } from 'bun:test'
import { callDelta, chunk, decodePayloads } from '#test/support/chat-decoding.ts'
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
