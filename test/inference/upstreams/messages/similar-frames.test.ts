import { expect, test } from 'bun:test'
import { textOfFrame } from '#inference/events.ts'
import { parseJson } from '#lib/json.ts'
import { createDice } from '#test/support/dice.ts'
import {
  blockDelta,
  blockStart,
  blockStop,
  type Decoded,
  decode,
  emptyText,
  emptyThinking,
  inputDelta,
  messageDelta,
  messageStart,
  messageStop,
  signature,
  text,
  thinkingDelta,
  toolUse,
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
        return blockStop(somewhere())
      case 1:
        block += 1
        return blockStart(emptyText, block)
      case 2:
        return blockStart(emptyThinking, somewhere())
      case 3:
        return thinkingDelta(word(), somewhere())
      case 4:
        return signature(word(), block)
      case 5:
        return blockStart(
          toolUse(`toolu_${number}`, 'look'),
          dice.upTo(2) === 0 ? block : block + 1,
        )
      case 6:
        return inputDelta(word(), somewhere())
      case 7:
        return { type: 'ping' }
      case 8:
        return blockDelta({ type: 'text_delta', text: word(), more: 1 }, block)
      case 9:
        return text(word(), somewhere())
      default:
        return text(word(), block)
    }
  })
  return [messageStart, ...drawn, ...(dice.upTo(9) === 0 ? [] : [messageDelta(), messageStop])]
}

function comparable({ events, frames, error }: Decoded) {
  const payloads = frames.map(({ payload: { number, ...payload } }) => payload)
  expect(frames.map((frame) => parseJson(textOfFrame(frame)))).toEqual(
    frames.map(({ payload }) => payload),
  )
  return { events, payloads, failure: error?.message }
}

function expectAlike(stream: readonly object[]) {
  // A number in each makes consecutive messages differ.
  const unlike = stream.map((payload, number) => ({ ...payload, number }))
  expect(comparable(decode(stream))).toEqual(comparable(decode(unlike)))
}

test('similar messages decode as they do individually', () => {
  for (let seed = 1; seed <= 300; seed++) {
    expectAlike(drawStream(createDice(seed)))
  }
})

test('text for an ended block is not added to the open one', () => {
  const blocks = Array.from({ length: 20 }, (_, index) => index).flatMap((index) => [
    blockStart(emptyText, index),
    text('a', index),
    text('b', index),
    blockStop(index),
  ])
  for (let index = 0; index < 20; index++) {
    expectAlike([
      messageStart,
      ...blocks.slice(0, -1),
      text('c', index),
      messageDelta(),
      messageStop,
    ])
  }
})
