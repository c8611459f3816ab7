import { expect, test } from 'bun:test'
import type { RecognitionEvent } from '#speech/recognition/recognition.ts'
import { PartialThrottle, TranscriptWriter } from '#speech/recognition/transcript-writer.ts'
import { eventually } from '#test/support/eventually.ts'

test('a burst of partials shows the first and the last', async () => {
  const shown: number[] = []
  const throttle = new PartialThrottle<number>(20, (value) => shown.push(value))
  for (let value = 1; value <= 100; value += 1) throttle.push(value)
  expect(shown).toEqual([1])
  await eventually('the last partial is shown', () => shown.length === 2)
  expect(shown).toEqual([1, 100])
  throttle.clear()
})

test('a partial superseded by a final is never shown', async () => {
  const { writer, texts } = createWriter(20)
  writer.partial({ text: 'go', startMs: 0, endMs: 100 })
  writer.partial({ text: 'go for', startMs: 0, endMs: 200 })
  final(writer, 'go forward')
  writer.partial({ text: 'and', startMs: 100, endMs: 200 })
  await eventually('the next partial is shown', () => texts().includes('and'))
  expect(texts()).toEqual(['go', 'go forward', 'and'])
})

test('an unchanged partial is not repeated', () => {
  const { writer, texts } = createWriter(1e6)
  for (const text of ['go', 'go', 'go  ', 'go on']) {
    writer.partial({ text, startMs: 0, endMs: 100 })
  }
  expect(texts()).toEqual(['go', 'go on'])
  writer.stop()
})

test('a dropped utterance is withdrawn and its segment number reused', () => {
  const { writer, transcripts, texts } = createWriter(1e6)
  writer.withdraw()
  writer.partial({ text: 'hm', startMs: 0, endMs: 100 })
  writer.withdraw()
  expect(writer.isOpen).toBe(false)
  final(writer, 'go')
  final(writer, 'on')
  expect(texts()).toEqual(['hm', '', 'go', 'on'])
  expect(transcripts()).toMatchObject([
    { segment: 1, rev: 1 },
    { segment: 1, rev: 2, stableText: '' },
    { segment: 1, rev: 3, isFinal: true },
    { segment: 2, rev: 1, isFinal: true },
  ])
  expect(writer.counts()).toEqual({ finals: 2, words: 2 })
})

function createWriter(partialsPerSecondMax: number) {
  const events: RecognitionEvent[] = []
  const options = { partials: true, words: true, partialsPerSecondMax }
  const writer = new TranscriptWriter(options, (event) => events.push(event))
  const transcripts = () => events.filter((event) => event.type === 'transcript')
  return { writer, transcripts, texts: () => transcripts().map(({ text }) => text) }
}

function final(writer: ReturnType<typeof createWriter>['writer'], text: string) {
  const rest = { speechFinal: true, confidence: null, words: [], fromFinalize: null }
  writer.final({ text, startMs: 0, endMs: 100, ...rest })
}
