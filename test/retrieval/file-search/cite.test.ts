import { expect, test } from 'bun:test'
import type { Citation, GenerationEvent } from '#inference/events.ts'
import { createCiter } from '#retrieval/file-search/cite.ts'
import { createPassageRegistry, type Passage } from '#retrieval/file-search/passages.ts'
import { checkEvents } from '#test/support/grammar.ts'

/** Citations replace the markers of the model in the events of a response. */

const leave: Passage = { fileId: 'f1', filename: 'leave.pdf', page: 4, text: 'Until March.' }
const travel: Passage = { fileId: 'f2', filename: 'travel.txt', page: null, text: 'By train.' }
const book = createPassageRegistry([leave, travel])

const text = (pieces: readonly string[], form: 'answer' | 'refusal' = 'answer') =>
  [
    { type: 'text-start', block: 0, form },
    ...pieces.map((piece) => ({ type: 'text-delta', block: 0, text: piece }) as const),
    { type: 'text-end', block: 0, complete: true },
  ] satisfies GenerationEvent[]

const cited = (number: number, { fileId, filename, text }: Passage, index: number) => ({
  type: 'citation',
  block: 0,
  citation: { kind: 'file', fileId, filename, index, quoted: { number, text } },
})

test('a citation names its passage and position', () => {
  expect(
    createCiter(book)(text(['Carry it over 【1】, and', ' go by train 【2】.'])),
  ).toMatchObject([
    { type: 'text-start' },
    { type: 'text-delta', text: 'Carry it over' },
    cited(1, leave, 13),
    { type: 'text-delta', text: ', and' },
    { type: 'text-delta', text: ' go by train' },
    cited(2, travel, 30),
    { type: 'text-delta', text: '.' },
    { type: 'text-end' },
  ])
})

test('a passage is cited once per position', () => {
  const events = createCiter(book)(text(['So 【1】【1】 【1】 and so 【1】']))
  const citations = events.filter(({ type }) => type === 'citation')
  expect(citations).toMatchObject([cited(1, leave, 2), cited(1, leave, 9)])
})

test('the order of events stays valid for any batching', async () => {
  const show = createCiter(book)
  const events: GenerationEvent[] = [
    { type: 'generation-start' },
    ...text(['【1】【2】']),
    ...text(['a 【1', '】']).map((event) => ({ ...event, block: 1 })),
    { type: 'finish', reason: 'stop', rawReason: null, usage: null },
  ]
  async function* oneByOne() {
    for (const event of events) yield show([event])
  }
  const shown = (await Array.fromAsync(checkEvents(oneByOne()))).flat()
  expect(shown).toEqual([...createCiter(book)(events)])
})

test('text without markers passes unchanged, with its log probabilities', () => {
  const logprobs = [{ token: 'so', logprob: -1, bytes: [115, 111], top: [] }]
  const [start, delta, end] = text(['so'])
  const events = [start, { ...delta, logprobs }, end] as GenerationEvent[]
  const shown = createCiter(book)(events)
  expect(shown.every((event, at) => event === events[at])).toBe(true)
})

test('refusals, reasoning and arguments pass unchanged', () => {
  const events: GenerationEvent[] = [
    ...text(['no 【1】'], 'refusal'),
    { type: 'reasoning-delta', block: 1, part: 0, text: 'hm 【1】' },
    { type: 'tool-call-delta', block: 2, text: '"【1】"' },
  ]
  expect(createCiter(book)(events)).toEqual(events)
})

test('a response without passages keeps its markers', () => {
  const events = text(['so 【1】'])
  expect(createCiter(createPassageRegistry())(events)).toBe(events)
})

test('passages found during the response can be cited afterwards', () => {
  const growing = createPassageRegistry()
  const show = createCiter(growing)
  expect(show(text(['so 【1】'])).map(({ type }) => type)).not.toContain('citation')
  growing.add(leave)
  expect(show(text(['so 【1】'])).map(({ type }) => type)).toContain('citation')
})

test('citations of the upstream are moved to positions in the shown text', () => {
  const written = 'One 【1】 two 【2】 three'
  const url = { kind: 'url', url: 'https://a', title: 'a' } as const
  const citation: Citation = {
    ...url,
    startIndex: written.indexOf('three'),
    endIndex: written.length,
  }
  const [start, delta, end] = text([written])
  const events = [start, delta, { type: 'citation', block: 0, citation }, end] as GenerationEvent[]
  const shown = createCiter(book)(events)
  expect(shown.at(-2)).toMatchObject({ citation: { ...url, startIndex: 8, endIndex: 13 } })
})

test('the number of citations is limited', () => {
  const events = createCiter(book)(text([...Array(3_000)].map((_, at) => `${at} 【1】`)))
  expect(events.filter(({ type }) => type === 'citation')).toHaveLength(1_024)
})
