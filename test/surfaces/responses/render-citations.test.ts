import { expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { renderDecoded } from '#test/support/rendering.ts'
import { checkStream } from '#test/support/response-frames.ts'

/** File citations in the stream of a response. */

const cite = (fileId: string, index: number, number: number): GenerationEvent => {
  const quoted = { number, text: `passage ${number}` }
  const citation = { kind: 'file', fileId, filename: `${fileId}.txt`, index, quoted } as const
  return { type: 'citation', block: 0, citation }
}

test('two passages of one file that are cited together are one annotation', () => {
  const say = (text: string): GenerationEvent => ({ type: 'text-delta', block: 0, text })
  const events: GenerationEvent[] = [
    { type: 'generation-start' },
    { type: 'text-start', block: 0, form: 'answer' },
    ...[say('one'), cite('a', 3, 1), cite('b', 3, 2), cite('a', 3, 3)],
    ...[say('two'), cite('a', 6, 1)],
    { type: 'text-end', block: 0, complete: true },
    { type: 'finish', reason: 'stop', rawReason: null, usage: null },
  ]
  const { frames } = checkStream(renderDecoded({ batches: [events], failure: null }))
  const annotationFrames = frames.filter(
    ({ type }) => type === 'response.output_text.annotation.added',
  )
  expect(annotationFrames.map(({ annotation_index: at, annotation }) => [at, annotation])).toEqual([
    [0, { type: 'file_citation', file_id: 'a', filename: 'a.txt', index: 3 }],
    [1, { type: 'file_citation', file_id: 'b', filename: 'b.txt', index: 3 }],
    [2, { type: 'file_citation', file_id: 'a', filename: 'a.txt', index: 6 }],
  ])
})
