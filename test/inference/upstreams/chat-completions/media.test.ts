import { describe, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { callDelta, chunk, decodePayloads } from '#test/support/chat-decoding.ts'

/** Output of chat upstreams that is not text. */

const image = (url: string) => ({ type: 'image_url', image_url: { url } })
const png = 'data:image/png;base64,iVBORw'
const pngItem = {
  type: 'image_generation_call',
  status: 'completed',
  result: 'iVBORw',
  output_format: 'png',
}

/** The texts and items in order. */
function contentOf(payloads: readonly unknown[]): unknown[] {
  const { events, error } = decodePayloads(payloads)
  expect(error).toBeNull()
  return events.flatMap((event: GenerationEvent): readonly (object | string | null)[] => {
    if (event.type === 'text-delta' || event.type === 'reasoning-delta') return [event.text]
    return event.type === 'hosted-tool-end' ? [event.item] : []
  })
}

describe('images', () => {
  test.each([
    ['in a delta', [chunk({ content: 'See:' }), chunk({ images: [image(png)] }, 'stop')]],
    [
      'in a content part',
      [chunk({ content: [{ type: 'text', text: 'See:' }, image(png)] }, 'stop')],
    ],
    [
      'in a whole message',
      [
        {
          choices: [{ message: { content: 'See:', images: [image(png)] }, finish_reason: 'stop' }],
        },
      ],
    ],
  ])('%s are items', (_, payloads) => {
    expect(contentOf(payloads)).toEqual(['See:', pngItem])
  })

  test('that the closing message repeats are one item', () => {
    const images = [image(png)]
    const last = { index: 0, message: { content: 'Hi', images }, finish_reason: 'stop' }
    expect(contentOf([chunk({ content: 'Hi' }), chunk({ images }), { choices: [last] }])).toEqual([
      'Hi',
      pngItem,
    ])
  })

  test('that only the closing message has are items', () => {
    const last = {
      index: 0,
      message: { content: 'Hi', images: [image(png)] },
      finish_reason: 'stop',
    }
    expect(contentOf([chunk({ content: 'Hi' }), { choices: [last] }])).toEqual(['Hi', pngItem])
  })

  test('with an address or bare data are items as well', () => {
    const images = [image('https://a.test/x.png'), { b64_json: 'AAAA' }, { type: 'image_url' }]
    expect(contentOf([chunk({ images }, 'stop')])).toEqual([
      { ...pngItem, output_format: undefined, result: null, image_url: 'https://a.test/x.png' },
      { ...pngItem, output_format: undefined, result: 'AAAA' },
    ])
  })

  test('equal chunks with text and an image are each read', () => {
    const both = chunk({ content: 'a', images: [image(png)] })
    expect(contentOf([both, both, both, chunk({}, 'stop')])).toHaveLength(6)
  })

  test('are limited to 64', () => {
    const some = Array(64).fill(chunk({ images: [image(png)] }))
    expect(contentOf([...some, chunk({}, 'stop')])).toHaveLength(64)
  })

  test('follow the calls before them, and are limited', () => {
    const call = chunk(callDelta([0, 'c', 'look', '{}']))
    expect(contentOf([call, chunk({ images: [image(png)] }, 'stop')])).toEqual([pngItem])
    const { error } = decodePayloads(Array(65).fill(chunk({ images: [image(png)] })))
    expect(error?.kind).toBe('upstream_invalid_answer')
  })
})

describe('audio', () => {
  const data = (text: string) => Buffer.from(text).toString('base64')
  const pieces = [
    chunk({ audio: { id: 'a', transcript: 'Hel' } }),
    chunk({ audio: { id: 'a', data: data('o') } }),
    chunk({ audio: { id: 'a', transcript: 'lo', data: data('gg') } }),
  ]
  const audio = (status: string) => ({
    type: 'output_audio',
    status,
    data: data('ogg'),
    transcript: 'Hello',
  })

  test('is an item at the end, and its transcript the answer', () => {
    expect(contentOf([...pieces, chunk({}, 'stop')])).toEqual(['Hel', 'lo', audio('completed')])
  })

  test('is incomplete at the limit', () => {
    expect(contentOf([...pieces, chunk({}, 'length')]).at(-1)).toEqual(audio('incomplete'))
  })

  test('of a whole message is the same', () => {
    const message = { content: null, audio: { transcript: 'Hello', data: data('ogg') } }
    expect(contentOf([{ choices: [{ message, finish_reason: 'stop' }] }])).toEqual([
      'Hello',
      audio('completed'),
    ])
  })

  test('that the closing message repeats is one item', () => {
    const message = { audio: { transcript: 'Hello', data: data('ogg') } }
    const last = { index: 0, message, finish_reason: 'stop' }
    expect(contentOf([...pieces, { choices: [last] }])).toEqual(['Hel', 'lo', audio('completed')])
  })

  test('without data is no item', () => {
    const only = chunk({ audio: { transcript: 'Hello' } }, 'stop')
    expect(contentOf([only])).toEqual(['Hello'])
  })

  test('beside content adds no text', () => {
    const both = chunk(
      { content: 'Hello', audio: { transcript: 'Hello', data: data('ogg') } },
      'stop',
    )
    expect(contentOf([both])).toEqual(['Hello', audio('completed')])
  })
})

test('`thinking` is reasoning', () => {
  const { events } = decodePayloads([
    ...['I ', 'should ', 'look.'].map((thinking) => chunk({ thinking })),
    chunk({ content: 'Yes' }, 'stop'),
  ])
  const reasoning = events.flatMap((event) =>
    event.type === 'reasoning-delta' ? [event.text] : [],
  )
  expect(reasoning.join('')).toBe('I should look.')
})

test('cached tokens at the top of usage are counted', () => {
  const usage = { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10, cached_tokens: 8 }
  const { events } = decodePayloads([chunk({ content: 'Hi' }, 'stop', { usage })])
  expect(events.at(-1)).toMatchObject({ usage: { cachedTokens: 8 } })
})
