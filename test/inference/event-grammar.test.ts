import { expect, test } from 'bun:test'
import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import { AppError } from '#lib/errors.ts'
import { checkEvents, createGrammar } from '#test/support/grammar.ts'

/** The checker of the event grammar: a rule that it does not enforce is a rule that no test has. */
const begin: GenerationEvent = { type: 'generation-start' }
const finish: GenerationEvent = { type: 'finish', reason: 'stop', rawReason: null, usage: null }
const error: GenerationEvent = { type: 'error', error: new AppError('upstream_error', 'x') }
const text = (block: number, complete = true): GenerationEvent[] => [
  { type: 'text-start', block, form: 'answer' },
  { type: 'text-delta', block, text: 'a' },
  { type: 'text-end', block, complete },
]
const reasoning = (block: number): GenerationEvent[] => [
  { type: 'reasoning-start', block },
  { type: 'reasoning-delta', block, part: 0, text: 'a' },
  { type: 'reasoning-end', block, complete: true },
]
const call = (block: number, callId: string): GenerationEvent[] => [
  { type: 'tool-call-start', block, call: { callId, name: 'f', form: 'function' } },
  { type: 'tool-call-delta', block, text: '{}' },
  { type: 'tool-call-end', block, complete: true },
]
const hosted = (block: number): GenerationEvent[] => [
  { type: 'hosted-tool-start', block, item: { type: 'mcp_call' } },
  { type: 'hosted-tool-progress', block, stage: 'searching' },
  { type: 'hosted-tool-delta', block, text: '{}' },
  { type: 'hosted-tool-end', block, item: null },
]
const citation: GenerationEvent = {
  type: 'citation',
  block: 0,
  citation: { kind: 'url', url: 'a', title: 'b', startIndex: 0, endIndex: 1 },
}

function check(events: readonly GenerationEvent[]): void {
  const grammar = createGrammar()
  for (const event of events) grammar.check(event)
  grammar.end()
}

const [textStart, textDelta, textEnd] = text(0)
const [reasoningStart, , reasoningEnd] = reasoning(0)

test.each<[string, readonly (GenerationEvent | undefined)[]]>([
  ['nothing but a finish', [begin, finish]],
  ['an error', [begin, error]],
  [
    'every kind of block',
    [begin, ...reasoning(0), ...text(1), ...call(2, 'a'), ...hosted(3), finish],
  ],
  ['two calls', [begin, ...call(0, 'a'), ...call(1, 'b'), finish]],
  ['a citation in a text', [begin, textStart, citation, textEnd, finish]],
  ['an incomplete last block', [begin, ...text(0), ...text(1, false), error]],
])('%s is accepted', (_name, events) => {
  check(events.flatMap((event) => event ?? []))
})

test.each<[string, readonly (GenerationEvent | undefined)[], string]>([
  ['no end', [begin, ...text(0)], 'without a terminal event'],
  ['no start', [...text(0), finish], 'before generation-start'],
  ['nothing at all', [], 'without a terminal event'],
  ['two starts', [begin, begin, finish], 'a second generation-start'],
  ['an event after the finish', [begin, finish, ...text(0)], 'after the terminal event'],
  ['two terminal events', [begin, finish, error], 'after the terminal event'],
  ['a start after the end', [begin, finish, begin], 'after the terminal event'],
  ['a finish in a block', [begin, textStart, finish], 'while block 0 is open'],
  ['an error in a block', [begin, textStart, error], 'while block 0 is open'],
  ['overlapping blocks', [begin, textStart, ...text(1), textEnd, finish], 'while block 0 is open'],
  ['a first block that is not 0', [begin, ...text(1), finish], 'is not number 0'],
  ['a number that is left out', [begin, ...text(0), ...text(2), finish], 'is not number 1'],
  ['a number twice', [begin, ...text(0), ...text(0), finish], 'is not number 1'],
  ['a delta without a block', [begin, textDelta, finish], 'outside its block 0'],
  ['a delta after its block', [begin, ...text(0), textDelta, finish], 'outside its block 0'],
  [
    'a delta of another block',
    [begin, ...text(0), ...text(1).slice(0, 1), textDelta],
    'outside its block 0',
  ],
  ['a delta of another kind', [begin, reasoningStart, textDelta], 'outside its block 0'],
  ['an end of another kind', [begin, textStart, reasoningEnd], 'outside its block 0'],
  ['a citation outside a text', [begin, reasoningStart, citation], 'outside its block 0'],
  ['a second end', [begin, ...text(0), textEnd], 'outside its block 0'],
  [
    'a block after an incomplete one',
    [begin, ...text(0, false), ...text(1), finish],
    'after an incomplete block',
  ],
  ['a call id twice', [begin, ...call(0, 'a'), ...call(1, 'a'), finish], 'call id a twice'],
])('%s is refused', (_name, events, message) => {
  expect(() => check(events.flatMap((event) => event ?? []))).toThrow(message)
})

test('a checked stream yields the same batches and fails at the first wrong event', async () => {
  async function* stream(batches: EventBatch[]) {
    yield* batches
  }
  const batches: EventBatch[] = [[begin, ...text(0)], [finish]]
  expect(await Array.fromAsync(checkEvents(stream(batches)))).toEqual(batches)
  const checked = checkEvents(stream([[begin], text(1), [finish]]))
  await checked.next()
  await expect(checked.next()).rejects.toThrow('is not number 0')
  await expect(Array.fromAsync(checkEvents(stream([[begin]])))).rejects.toThrow('terminal event')
})
