import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import type { EventBatches } from '#inference/inference.ts'
import { Steering } from '#inference/steering.ts'
import { AppError } from '#lib/errors.ts'
import { makeRequest } from '#test/support/generation.ts'
import { createGrammar } from '#test/support/grammar.ts'
import { holdsAsync } from '#test/support/properties.ts'

/** Generations that are interrupted at any moment keep the grammar of events. */

type Kind = 'text' | 'reasoning' | 'call' | 'hosted'

function blockOf(kind: Kind, block: number): GenerationEvent[] {
  switch (kind) {
    case 'text':
      return [
        { type: 'text-start', block, form: 'answer' },
        { type: 'text-delta', block, text: 'abc' },
        { type: 'text-delta', block, text: 'def' },
        { type: 'text-end', block, complete: true },
      ]
    case 'reasoning':
      return [
        { type: 'reasoning-start', block },
        { type: 'reasoning-delta', block, part: 0, text: 'hm' },
        { type: 'reasoning-end', block, complete: true },
      ]
    case 'call':
      return [
        {
          type: 'tool-call-start',
          block,
          call: { callId: `c${block}`, name: 'f', form: 'function' },
        },
        { type: 'tool-call-delta', block, text: '{}' },
        { type: 'tool-call-end', block, complete: true },
      ]
    case 'hosted':
      return [
        { type: 'hosted-tool-start', block, item: { type: 'mcp_call' } },
        { type: 'hosted-tool-progress', block, stage: 'calling' },
        { type: 'hosted-tool-end', block, item: { type: 'mcp_call' } },
      ]
  }
}

type Ending = 'finish' | 'error' | 'throw' | 'hang'

/** The batches of a generation; `sizes` says how many events each has. */
function batchesOf(kinds: readonly Kind[], ending: Ending, sizes: readonly number[]): EventBatch[] {
  const error = new AppError('upstream_error', 'x')
  const last: GenerationEvent[] =
    ending === 'finish'
      ? [{ type: 'finish', reason: 'stop', rawReason: null, usage: null }]
      : ending === 'error'
        ? [{ type: 'error', error }]
        : []
  const events = [{ type: 'generation-start' } as const, ...kinds.flatMap(blockOf), ...last]
  const batches: EventBatch[] = []
  for (let at = 0; events.length > 0; at++) {
    batches.push(events.splice(0, sizes[at % sizes.length]))
  }
  return batches
}

type Step = 'pull' | 'interrupt' | 'abort' | 'turn'

const world = fc.record({
  kinds: fc.array(fc.constantFrom<Kind>('text', 'reasoning', 'call', 'hosted'), { maxLength: 5 }),
  ending: fc.constantFrom<Ending>('finish', 'error', 'throw', 'hang'),
  sizes: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 4 }),
  steps: fc.array(fc.constantFrom<Step>('pull', 'pull', 'turn', 'interrupt', 'abort'), {
    maxLength: 30,
  }),
})

/** A generation like those of upstreams, which notices an abort while it waits. */
function startGeneration(batches: readonly EventBatch[], ending: Ending) {
  const state = { isReturned: false, isAborted: false, emitted: 0 }
  const generate = (signal: AbortSignal): EventBatches => {
    signal.addEventListener('abort', () => {
      state.isAborted = true
    })
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
    })
    aborted.catch(() => {})
    async function* run(): AsyncGenerator<EventBatch, void, void> {
      try {
        for (const batch of batches) {
          await Promise.race([Bun.sleep(0), aborted])
          state.emitted++
          yield batch
        }
        if (ending === 'throw') throw new AppError('upstream_error', 'x')
        if (ending === 'hang') await aborted
      } finally {
        state.isReturned = true
      }
    }
    return run()
  }
  return { generate, state }
}

async function play(given: typeof world extends fc.Arbitrary<infer T> ? T : never) {
  const batches = batchesOf(given.kinds, given.ending, given.sizes)
  const { generate, state } = startGeneration(batches, given.ending)
  const steering = new Steering()
  const controller = new AbortController()
  const events: GenerationEvent[] = []
  let failure: unknown = null
  let isDone = false
  let isPulling: Promise<void> | null = null
  const items = steering.run(generate, { signal: controller.signal, request: makeRequest() })
  const pullOne = async () => {
    try {
      const next = await items.next()
      if (next.done) isDone = true
      else events.push(...next.value)
    } catch (error) {
      failure = error
      isDone = true
    }
  }
  let wasInterrupted = false
  let wasAborted = false
  for (const step of given.steps) {
    if (step === 'interrupt') {
      wasInterrupted = true
      steering.interrupt()
    } else if (step === 'abort') {
      wasAborted = true
      controller.abort(new AppError('client_closed', 'gone'))
      void items.return()
    } else if (step === 'turn') await Bun.sleep(0)
    else if (isPulling === null && !isDone) {
      isPulling = pullOne().then(() => {
        isPulling = null
      })
    }
  }
  // What hangs ends with an interruption only, or never.
  if (given.ending === 'hang' && !wasAborted && !wasInterrupted) {
    wasInterrupted = true
    steering.interrupt()
  }
  const mustEnd = given.ending !== 'hang' || wasAborted || !given.kinds.includes('call')
  if (mustEnd) {
    await isPulling
    while (!isDone) await pullOne()
  } else await Bun.sleep(5)
  return { events, failure, state, wasInterrupted, wasAborted, mustEnd, items }
}

const texts = (events: readonly GenerationEvent[], type: GenerationEvent['type']) =>
  events.flatMap((event) => (event.type === type && 'text' in event ? [event.text] : [])).join('')

describe('an interrupted generation', () => {
  test('keeps the grammar, loses no call of a client, and releases its source', async () => {
    await holdsAsync(
      world,
      async (given) => {
        const played = await play(given)
        const { events, failure, state, wasInterrupted, wasAborted, mustEnd } = played
        const grammar = createGrammar()
        for (const event of events) grammar.check(event)
        const last = events.at(-1)
        const isSteered = last?.type === 'finish' && last.reason === 'steered'
        if (isSteered) {
          expect(wasInterrupted).toBe(true)
          grammar.end()
          // A call of a client's tool is never cut off, nor followed by an interruption.
          expect(events.some(({ type }) => type === 'tool-call-start')).toBe(false)
          const cut = events.findLast(({ type }) => type.endsWith('-end'))
          if (cut?.type === 'hosted-tool-end') expect(cut.item).not.toBeNull()
        } else if (!wasAborted && mustEnd && failure === null && events.length > 0) {
          grammar.end()
        }
        const whole = batchesOf(given.kinds, given.ending, given.sizes).flat()
        for (const type of ['text-delta', 'reasoning-delta', 'tool-call-delta'] as const) {
          expect(texts(whole, type).startsWith(texts(events, type))).toBe(true)
        }
        if (!mustEnd) await played.items.return()
        await Bun.sleep(2)
        expect(state.isReturned || state.emitted === 0).toBe(true)
      },
      300,
    )
  })

  test('before its first event is one finish', async () => {
    const steering = new Steering()
    const { generate, state } = startGeneration([[{ type: 'generation-start' }]], 'hang')
    steering.interrupt()
    const signal = new AbortController().signal
    const items = steering.run(generate, { signal, request: makeRequest() })
    expect(await Array.fromAsync(items)).toMatchObject([
      [{ type: 'generation-start' }, { type: 'finish', reason: 'steered' }],
    ])
    expect(state.isAborted).toBe(true)
  })

  test('has an estimate of its usage', async () => {
    const steering = new Steering()
    const start: EventBatch = [{ type: 'generation-start' }, ...blockOf('text', 0).slice(0, 2)]
    const { generate } = startGeneration([start], 'hang')
    const signal = new AbortController().signal
    const request = makeRequest({ instructions: 'x'.repeat(400) })
    const items = steering.run(generate, { signal, request })
    await items.next()
    steering.interrupt()
    const { value } = await items.next()
    expect(value?.[1]).toMatchObject({ usage: { outputTokens: 1, estimated: true } })
    expect(Object(value?.[1]).usage.inputTokens).toBeGreaterThan(100)
  })

  test('ends by itself after a call of a client', async () => {
    const finish: GenerationEvent = {
      type: 'finish',
      reason: 'tool-calls',
      rawReason: null,
      usage: null,
    }
    const calls: EventBatch = [{ type: 'generation-start' }, ...blockOf('call', 0)]
    const { generate } = startGeneration([calls, blockOf('text', 1), [finish]], 'finish')
    const signal = new AbortController().signal
    const steering = new Steering()
    const items = steering.run(generate, { signal, request: makeRequest() })
    await items.next()
    steering.interrupt()
    expect((await Array.fromAsync(items)).flat()).toEqual([...blockOf('text', 1), finish])
  })

  test('goes on after a call of an asynchronous tool, which is not cut off', async () => {
    const [start, ...rest] = blockOf('call', 0)
    const begun: EventBatch = [{ type: 'generation-start' }, ...(start ? [start] : [])]
    const { generate } = startGeneration([begun, rest], 'hang')
    const signal = new AbortController().signal
    const tool = { type: 'function', name: 'f', description: null, parameters: null, strict: null }
    const request = makeRequest({ tools: [{ ...tool, type: 'function', async: true }] })
    const steering = new Steering()
    const items = steering.run(generate, { signal, request })
    await items.next()
    steering.interrupt()
    expect((await items.next()).value?.at(-1)).toMatchObject({ type: 'tool-call-end' })
    expect((await items.next()).value).toMatchObject([{ type: 'finish', reason: 'steered' }])
  })
})
