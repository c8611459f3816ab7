import { expect, test } from 'bun:test'
import { createPartialPacer } from '#speech/recognition/partial-pacer.ts'
import type { RecognitionEvent } from '#speech/recognition/recognition-events.ts'
import { createTranscriptWriter } from '#speech/recognition/transcript-writer.ts'
import { eventually } from '#test/support/eventually.ts'

test('of many partials at once the first and the last are shown', async () => {
  const shown: number[] = []
  const pacer = createPartialPacer<number>(20, (value) => shown.push(value))
  for (let value = 1; value <= 100; value += 1) pacer.offer(value)
  expect(shown).toEqual([1])
  await eventually('the last one is shown', () => shown.length === 2)
  expect(shown).toEqual([1, 100])
  pacer.clear()
})

test('what a final has overtaken is never shown', async () => {
  const { writer, texts } = write(20)
  writer.partial({ text: 'go', startMs: 0, endMs: 100 })
  writer.partial({ text: 'go for', startMs: 0, endMs: 200 })
  final(writer, 'go forward')
  writer.partial({ text: 'and', startMs: 100, endMs: 200 })
  await eventually('the next partial is shown', () => texts().includes('and'))
  expect(texts()).toEqual(['go', 'go forward', 'and'])
})

test('a partial that says nothing new is not shown again', () => {
  const { writer, texts } = write(1e6)
  for (const text of ['go', 'go', 'go  ', 'go on']) {
    writer.partial({ text, startMs: 0, endMs: 100 })
  }
  expect(texts()).toEqual(['go', 'go on'])
  writer.stop()
})

test('what was a mistake is withdrawn, and the next text takes its segment', () => {
  const { writer, told, texts } = write(1e6)
  writer.withdraw()
  writer.partial({ text: 'hm', startMs: 0, endMs: 100 })
  writer.withdraw()
  expect(writer.isOpen()).toBe(false)
  final(writer, 'go')
  final(writer, 'on')
  expect(texts()).toEqual(['hm', '', 'go', 'on'])
  expect(told()).toMatchObject([
    { segment: 1, rev: 1 },
    { segment: 1, rev: 2, stableText: '' },
    { segment: 1, rev: 3, isFinal: true },
    { segment: 2, rev: 1, isFinal: true },
  ])
  expect(writer.counts()).toEqual({ finals: 2, words: 2 })
})

function write(partialsPerSecondMax: number) {
  const events: RecognitionEvent[] = []
  const options = { partials: true, words: true, partialsPerSecondMax }
  const writer = createTranscriptWriter(options, (event) => events.push(event))
  const told = () => events.filter((event) => event.type === 'transcript')
  return { writer, told, texts: () => told().map(({ text }) => text) }
}

function final(writer: ReturnType<typeof write>['writer'], text: string) {
  const rest = { speechFinal: true, confidence: null, words: [], fromFinalize: null }
  writer.final({ text, startMs: 0, endMs: 100, ...rest })
}
