import { describe, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { AppError } from '#lib/errors.ts'
import { createDice } from '#test/support/dice.ts'
import { checkMessageBeginning, checkMessageStream } from '#test/support/message-frames.ts'
import { checkMessageBody } from '#test/support/message-objects.ts'
import {
  callBlock,
  foldMessage,
  generationOf,
  openMessageRenderer,
  renderMessage,
  textBlock,
} from '#test/support/message-rendering.ts'
import { normalise } from '#test/support/response-content.ts'
import { rollGeneration } from '#test/support/rolled-events.ts'
import { checkWithMessageClients } from '#test/support/strict-message-clients.ts'

const generations = 3_000

type Dice = ReturnType<typeof createDice>

/** Events in batches of any size, with heartbeats between them, as a silent upstream causes. */
function write(
  dice: Dice,
  events: readonly GenerationEvent[],
  display: (typeof displays)[number],
): string {
  const renderer = openMessageRenderer({ thinkingDisplay: display })
  let wire = dice.upTo(2) === 0 ? renderer.open() : ''
  for (let at = 0; at < events.length; ) {
    for (let beats = dice.upTo(8); beats > 3; beats--) wire += renderer.heartbeat()
    const next = at + 1 + dice.upTo(3)
    wire += renderer.push(events.slice(at, next))
    at = next
  }
  return wire
}

const displays = ['summarized', 'omitted'] as const
const same = (message: unknown) => JSON.parse(normalise(JSON.stringify(message)))

test('every generation is a valid stream, and equals the message without streaming', () => {
  for (let seed = 0; seed < generations; seed++) {
    const dice = createDice(seed)
    const events = rollGeneration(dice)
    const thinkingDisplay = displays[seed % 2] ?? 'summarized'
    const { message, error } = checkMessageStream(write(dice, events, thinkingDisplay))
    const last = events.at(-1)
    const isFailed = last?.type !== 'finish' || last.reason === 'invalid-output'
    expect(error !== null).toBe(isFailed)
    if (isFailed) {
      expect(() => foldMessage([events])).toThrow(AppError)
      continue
    }
    const folded = foldMessage([events], { thinkingDisplay })
    checkMessageBody(folded)
    expect(same(folded)).toEqual(same(message))
  }
})

test('the stream helpers of the SDKs read every generation', async () => {
  for (let seed = 0; seed < generations; seed += 10) {
    const dice = createDice(seed)
    const wire = write(dice, rollGeneration(dice), 'summarized')
    await checkWithMessageClients(checkMessageStream(wire))
  }
})

describe('a stream', () => {
  test('has these frames for a short message', () => {
    const { wire } = renderMessage([generationOf(textBlock(0, 'a\u2028', 'b'))])
    const usage = {
      input_tokens: 12,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      output_tokens: 0,
      output_tokens_details: null,
      server_tool_use: null,
      service_tier: null,
      speed: null,
      inference_geo: null,
    }
    const end = { stop_reason: 'end_turn', stop_sequence: null, stop_details: null }
    const message = {
      id: 'msg_test',
      type: 'message',
      role: 'assistant',
      model: 'vendor-model-m',
      content: [],
      ...end,
      stop_reason: null,
      container: null,
      diagnostics: null,
      usage,
    }
    const frames = [
      { type: 'message_start', message },
      {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'text', text: '' },
      },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a\u2028' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'b' } },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { ...end, container: null },
        usage: {
          ...usage,
          input_tokens: 10,
          cache_creation_input_tokens: 2,
          cache_read_input_tokens: 8,
          cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 0 },
          output_tokens: 9,
          output_tokens_details: { thinking_tokens: 4 },
        },
      },
      { type: 'message_stop' },
    ]
    const text = frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`)
    expect(wire).toBe(text.join('').replaceAll('\u2028', '\\u2028'))
  })

  test('that starts before its first event begins with a ping', () => {
    const renderer = openMessageRenderer()
    const wire =
      renderer.open() + renderer.heartbeat() + renderer.push(generationOf(textBlock(0, 'Hello')))
    const types = checkMessageStream(wire).frames.map(({ type }) => type)
    expect(types.slice(0, 3)).toEqual(['ping', 'ping', 'message_start'])
  })

  test('sends an empty delta during a long silence in a block', () => {
    const blocks: [GenerationEvent[], object][] = [
      [textBlock(0, 'one'), { type: 'text_delta', text: '' }],
      [callBlock(0, { pieces: ['{'] }), { type: 'input_json_delta', partial_json: '' }],
    ]
    for (const [block, delta] of blocks) {
      const renderer = openMessageRenderer()
      const wire = renderer.push([{ type: 'generation-start' }, ...block.slice(0, 2)])
      const beats = Array.from({ length: 8 }, () => renderer.heartbeat()).join('')
      const frames = checkMessageBeginning(wire + beats).slice(-8)
      expect(frames.map(({ delta }) => delta)).toEqual([
        ...[undefined, undefined, undefined, delta],
        ...[undefined, undefined, undefined, delta],
      ])
    }
  })
})

describe('a failure', () => {
  const full = new AppError('upstream_overloaded', 'Full.')
  const expectedError = {
    type: 'overloaded_error',
    message: 'Full.',
    details: { error_code: 'upstream_overloaded' },
  }

  test('before anything else is the only event of the stream', () => {
    for (const opened of [true, false]) {
      const renderer = openMessageRenderer()
      const { error, message } = checkMessageStream(
        (opened ? renderer.open() : '') + renderer.fail(full),
      )
      expect(error).toEqual(expectedError)
      expect(message).toBeNull()
    }
  })

  test('ends the open block, and is the last event', () => {
    const begun = generationOf(textBlock(0, 'Hel')).slice(0, 3)
    const byEvent: GenerationEvent[] = [
      { type: 'text-end', block: 0, complete: false },
      { type: 'error', error: full },
    ]
    const renderer = openMessageRenderer()
    for (const wire of [
      openMessageRenderer().push([...begun, ...byEvent]),
      renderer.push(begun) + renderer.fail(full),
    ]) {
      const { error, frames, message } = checkMessageStream(wire)
      expect(error).toEqual(expectedError)
      expect(frames.slice(-2).map(({ type }) => type)).toEqual(['content_block_stop', 'error'])
      expect(message).toMatchObject({ content: [{ text: 'Hel' }] })
    }
  })

  test('after the end is ignored', () => {
    const renderer = openMessageRenderer()
    const wire = renderer.push(generationOf(textBlock(0, 'Hello')))
    expect(renderer.fail(full)).toBe('')
    checkMessageStream(wire)
  })
})
