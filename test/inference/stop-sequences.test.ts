import { afterEach, describe, expect, test } from 'bun:test'
import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import type { Generate, GenerationJob } from '#inference/inference.ts'
import { withStopSequences } from '#inference/stop-sequences.ts'
import { createDice } from '#test/support/dice.ts'
import { makeRequest, makeRequestContext, mergeDeltas } from '#test/support/generation.ts'
import {
  collect,
  failure,
  start,
  stopUpstreams,
  target,
  upstreamThat,
} from '#test/support/generations.ts'
import { checkEvents } from '#test/support/grammar.ts'
import { chatStream } from '#test/support/recordings.ts'

const usage = {
  inputTokens: 7,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 3,
  reasoningTokens: 0,
  totalTokens: 10,
}
const begin: GenerationEvent = { type: 'generation-start' }
const open = (block: number): GenerationEvent => ({ type: 'text-start', block, form: 'answer' })
const close = (block: number): GenerationEvent => ({ type: 'text-end', block, complete: true })
const say = (text: string, block = 0): GenerationEvent => ({ type: 'text-delta', block, text })
const finish: GenerationEvent = { type: 'finish', reason: 'stop', rawReason: 'stop', usage }
const stopped = (stopSequence: string, counted: typeof usage | null = null): GenerationEvent => ({
  type: 'finish',
  reason: 'stop-sequence',
  rawReason: null,
  usage: counted,
  stopSequence,
})

/** One answer in these deltas, each a batch of its own. */
const answer = (...deltas: string[]): EventBatch[] => [
  [begin, open(0)],
  ...deltas.map((text) => [say(text)]),
  [close(0), finish],
]

afterEach(stopUpstreams)

describe('a response with stop sequences', () => {
  const cases: [what: string, sequences: string[], deltas: string[], text: string, stop: string][] =
    [
      ['ends before the first match', ['END'], ['one END two END'], 'one ', 'END'],
      ['ends where a match lies over deltas', ['STOP'], ['a S', 'T', 'OP b'], 'a ', 'STOP'],
      ['ends with nothing where it begins with one', ['x'], ['xyz'], '', 'x'],
      ['ends at the sequence that is complete first', ['abcd', 'bc'], ['-abcd'], '-a', 'bc'],
      ['ends at the longest of those complete at once', ['b', 'ab', 'aab'], ['-aab'], '-', 'aab'],
      ['finds one inside of the beginning of another', ['aab', 'aa!'], ['aaab'], 'a', 'aab'],
      ['finds one behind a false beginning', ['nano'], ['nanano'], 'na', 'nano'],
      ['ends before a character of two units', ['😀!'], ['hi \ud83d', '\ude00', '!'], 'hi ', '😀!'],
    ]
  test.each(cases)('%s', async (_, sequences, deltas, text, stop) => {
    const events = mergeDeltas(await run(sequences, answer(...deltas)))
    expect(events).toEqual([
      begin,
      open(0),
      ...(text === '' ? [] : [say(text)]),
      close(0),
      stopped(stop),
    ])
  })

  test('is complete without a match, also with the start of one at its end', async () => {
    for (const deltas of [['one two'], ['one', ' E', 'N'], ['E', 'EN', 'E']]) {
      const events = mergeDeltas(await run(['END'], answer(...deltas)))
      expect(events).toEqual([begin, open(0), say(deltas.join('')), close(0), finish])
    }
  })

  test('holds back only what may become a sequence', async () => {
    const batches = wrapped(['END'], answer('one', ' two E', 'N', 'd', ' three'))
    const texts = (await Array.fromAsync(batches)).map((batch) =>
      batch.flatMap((event) => (event.type === 'text-delta' ? [event.text] : [])).join(''),
    )
    expect(texts).toEqual(['', 'one', ' two ', 'ENd', ' three', ''])
  })

  test('keeps the usage if the upstream had reported it', async () => {
    const events = await run(['END'], [[begin, open(0), say('one END'), close(0), finish]])
    expect(events.at(-1)).toEqual(stopped('END', usage))
  })

  test('is searched in each text separately, and nowhere else', async () => {
    const call = { callId: 'c', name: 'n', form: 'function' } as const
    const batch: GenerationEvent[] = [
      begin,
      { type: 'reasoning-start', block: 0 },
      { type: 'reasoning-delta', block: 0, part: 0, text: 'END' },
      { type: 'reasoning-end', block: 0, complete: true },
      open(1),
      say('E', 1),
      close(1),
      open(2),
      say('ND', 2),
      close(2),
      { type: 'text-start', block: 3, form: 'refusal' },
      say('END', 3),
      close(3),
      { type: 'tool-call-start', block: 4, call },
      { type: 'tool-call-delta', block: 4, text: '{"a":"END"}' },
      { type: 'tool-call-end', block: 4, complete: true },
      finish,
    ]
    expect(await run(['END'], [batch])).toEqual(batch)
  })

  test('keeps frames that contain none of the sequences', async () => {
    const frames = [{ payload: { type: 'ping' }, data: '{"type":"ping"}' }]
    const relay = { protocol: 'messages', frames, maker: 'm' } as const
    const relayed = answer('one two').map((batch) => Object.assign([...batch], { relay }))
    expect(await Array.fromAsync(wrapped(['END'], relayed))).toEqual(relayed)
  })

  test('is unchanged without sequences, or with sequences that cannot occur', async () => {
    const batches = (async function* () {})()
    expect(withStopSequences(() => batches)(jobOf([]))).toBe(batches)
    const events = await run(['', '\ude00'], answer('one 😀'))
    expect(events).toEqual(answer('one 😀').flat())
  })

  test('matches a search of the whole text', async () => {
    const dice = createDice(7)
    const roll = (most: number) =>
      Array.from({ length: 1 + dice.upTo(most) }, () => 'ab'.charAt(dice.upTo(2))).join('')
    for (let round = 0; round < 2_000; round++) {
      const sequences = Array.from({ length: 1 + dice.upTo(3) }, () => roll(5))
      const deltas = Array.from({ length: 6 }, () => roll(4))
      const events = mergeDeltas(await run(sequences, answer(...deltas)))
      const { text, stop } = search(deltas.join(''), sequences)
      const said = events.flatMap((event) => (event.type === 'text-delta' ? [event.text] : []))
      expect(said.join(''), `${sequences} in ${deltas}`).toBe(text)
      expect(events.at(-1)).toEqual(stop === null ? finish : stopped(stop))
    }
  })

  test('takes linear time', async () => {
    const sequence = `${'a'.repeat(16_000)}b`
    const deltas = Array.from({ length: 300_000 }, () => 'aa')
    const events = await run([sequence], answer(...deltas, 'b'))
    const text = events.flatMap((event) => (event.type === 'text-delta' ? [event.text] : []))
    expect(text.join('')).toHaveLength(600_000 - 16_000)
    expect(events.at(-1)).toEqual(stopped(sequence))
  })

  test('is refused with too long sequences', async () => {
    const error = await failure(wrapped(['x'.repeat(16_385)], answer('one')))
    expect([error.status, error.param]).toEqual([400, 'stop_sequences'])
  })
})

describe('the upstream of a response with stop sequences', () => {
  const chunk = (content: string) => ({ choices: [{ index: 0, delta: { content } }] })

  test('is ended before the last batch', async () => {
    const body = chatStream([chunk('one E'), chunk('ND two')]).replace('data: [DONE]\n\n', '')
    const upstream = await upstreamThat({ body, ending: 'hang' })
    const { inference, records } = start()
    const job = { ...jobOf(['END']), targets: [target(upstream.baseUrl)] }
    const batches = checkEvents(withStopSequences(inference.generate)(job))
    for (;;) {
      const { value = [] } = await batches.next()
      if (value.at(-1)?.type !== 'finish') continue
      expect(value.at(-1)).toEqual(stopped('END'))
      break
    }
    expect(inference.running()).toBe(0)
    expect(records).toHaveLength(1)
    await upstream.until(({ connections }) => connections.aborted === 1)
    expect((await batches.next()).done).toBe(true)
  })

  test('is ended when the client stops reading', async () => {
    const body = chatStream([chunk('one')]).replace('data: [DONE]\n\n', '')
    const upstream = await upstreamThat({ body, ending: 'hang' })
    const { inference } = start()
    const job = { ...jobOf(['END']), targets: [target(upstream.baseUrl)] }
    const batches = withStopSequences(inference.generate)(job)
    await batches.next()
    await batches.return()
    await upstream.until(({ connections }) => connections.aborted === 1)
    expect(inference.running()).toBe(0)
  })
})

function jobOf(stopSequences: readonly string[]): GenerationJob {
  const request = makeRequest()
  return {
    request: { ...request, sampling: { ...request.sampling, stopSequences } },
    targets: [],
    context: makeRequestContext(),
  }
}

function wrapped(sequences: readonly string[], batches: readonly EventBatch[]) {
  const generate: Generate = async function* () {
    yield* batches
  }
  return checkEvents(withStopSequences(generate)(jobOf(sequences)))
}

async function run(sequences: readonly string[], batches: readonly EventBatch[]) {
  return collect(wrapped(sequences, batches))
}

/** The same rules by the simplest possible search. */
function search(text: string, sequences: readonly string[]) {
  for (let end = 1; end <= text.length; end++) {
    const ending = sequences.filter((sequence) => text.slice(0, end).endsWith(sequence))
    const [stop] = ending.sort((one, other) => other.length - one.length)
    if (stop !== undefined) return { text: text.slice(0, end - stop.length), stop }
  }
  return { text, stop: null }
}
