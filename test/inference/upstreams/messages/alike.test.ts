import { expect, test } from 'bun:test'
import { parseJson } from '#lib/json.ts'
import { createDice } from '#test/support/dice.ts'
import {
  begun,
  called,
  type Decoded,
  decode,
  ended,
  grown,
  input,
  opened,
  over,
  signature,
  stopped,
  text,
  textShell,
  thinkingShell,
  thought,
} from './decoding.ts'

const words = ['a', ' b', '"', '\\', '\n\n', '', 'ž', '\u2028', '{"text":"c"}']

/** Random streams, mostly text for one block, in order or not. */
function drawStream(dice: ReturnType<typeof createDice>): object[] {
  let block = 0
  const word = () => words[dice.upTo(words.length)] ?? ''
  const somewhere = () => [block, block + 1, 0, null][dice.upTo(4)]
  const drawn = Array.from({ length: 40 }, (_, number) => {
    switch (dice.upTo(24)) {
      case 0:
        return stopped(somewhere())
      case 1:
        block += 1
        return opened(textShell, block)
      case 2:
        return opened(thinkingShell, somewhere())
      case 3:
        return thought(word(), somewhere())
      case 4:
        return signature(word(), block)
      case 5:
        return opened(called(`toolu_${number}`, 'look'), dice.upTo(2) === 0 ? block : block + 1)
      case 6:
        return input(word(), somewhere())
      case 7:
        return { type: 'ping' }
      case 8:
        return grown({ type: 'text_delta', text: word(), more: 1 }, block)
      case 9:
        return text(word(), somewhere())
      default:
        return text(word(), block)
    }
  })
  return [begun, ...drawn, ...(dice.upTo(9) === 0 ? [] : [ended(), over])]
}

function told({ events, frames, error }: Decoded) {
  const payloads = frames.map(({ payload: { number, ...payload } }) => payload)
  expect(frames.map(({ data }) => parseJson(data))).toEqual(frames.map(({ payload }) => payload))
  return { events, payloads, failure: error?.message }
}

function expectAlike(stream: readonly object[]) {
  // A number in each makes consecutive messages differ.
  const unlike = stream.map((payload, number) => ({ ...payload, number }))
  expect(told(decode(stream))).toEqual(told(decode(unlike)))
}

test('similar messages decode as they do individually', () => {
  for (let seed = 1; seed <= 300; seed++) {
    expectAlike(drawStream(createDice(seed)))
  }
})

test('text for an ended block is not added to the open one', () => {
  const blocks = Array.from({ length: 20 }, (_, index) => index).flatMap((index) => [
    opened(textShell, index),
    text('a', index),
    text('b', index),
    stopped(index),
  ])
  for (let index = 0; index < 20; index++) {
    expectAlike([begun, ...blocks.slice(0, -1), text('c', index), ended(), over])
  }
})
