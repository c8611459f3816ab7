import { expect, test } from 'bun:test'
import type { RequestItem } from '#inference/request.ts'
import { markFailure } from '#inference/tools.ts'
import { encodeItem } from '#inference/upstreams/responses/encode-item.ts'
import { defaultQuirks } from '#test/support/generation.ts'

const text = (words: string) => ({ type: 'text' as const, text: words })
const image = { type: 'image' as const, url: 'https://example.com/a.png', detail: null }

test('a successful tool result is unchanged', () => {
  const parts = [text('red'), image]
  expect(markFailure({ parts })).toBe(parts)
  expect(markFailure({ parts, isError: false })).toBe(parts)
})

test('a failed tool result starts with a marker', () => {
  const failed = (...parts: (typeof image | ReturnType<typeof text>)[]) =>
    markFailure({ parts, isError: true })
  expect(failed(text('No such city.'), image)).toEqual([
    text('[The tool failed]\nNo such city.'),
    image,
  ])
  expect(failed(image)).toEqual([text('[The tool failed]'), image])
  expect(failed()).toEqual([text('[The tool failed]')])
})

test('a Responses upstream receives the marker in the output, which stays one text', () => {
  const item: RequestItem = {
    type: 'tool-result',
    callId: 'a',
    form: 'function',
    parts: [text('No such city.')],
    isError: true,
  }
  expect(encodeItem(item, { quirks: defaultQuirks, targetName: 'x/m' })).toEqual([
    {
      type: 'function_call_output',
      call_id: 'a',
      output: '[The tool failed]\nNo such city.',
    },
  ])
})
