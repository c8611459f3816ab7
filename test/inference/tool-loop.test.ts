import { afterEach, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { makeRequestContext } from '#test/support/generation.ts'
import { stopUpstreams, target, texts, upstreamThat } from '#test/support/generations.ts'
import {
  calling,
  functionTool,
  hostedTools,
  loop,
  loopEvents,
  note,
  saying,
} from './tool-loop/looping.ts'

afterEach(stopUpstreams)

const types = (events: readonly GenerationEvent[]) => events.map(({ type }) => type)
const items = (events: readonly GenerationEvent[]) =>
  events.flatMap((event) => (event.type === 'hosted-tool-end' ? [event.item] : []))
const finish = (events: readonly GenerationEvent[]) => events.at(-1)

test('a hosted tool runs, and the model responds with its result', async () => {
  const upstream = await upstreamThat(
    { body: calling(['a', 'note', '{"x":1}']) },
    { body: saying('Done.') },
  )
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note() }),
  })
  expect(types(events)).toEqual([
    'generation-start',
    'hosted-tool-start',
    'hosted-tool-progress',
    'hosted-tool-delta',
    'hosted-tool-delta',
    'hosted-tool-progress',
    'hosted-tool-progress',
    'hosted-tool-end',
    'text-start',
    'text-delta',
    'text-end',
    'finish',
  ])
  expect(events[1]).toMatchObject({ item: { type: 'note_call', args: '' } })
  expect(items(events)).toEqual([{ type: 'note_call', args: '{"x":1}' }])
  expect(texts(events)).toBe('Done.')
  const [first, second] = upstream.requests.map(({ body }) => JSON.parse(body))
  expect(first.tools.map((tool: { function: { name: string } }) => tool.function.name)).toEqual([
    'note',
  ])
  expect(second.messages.slice(1)).toEqual([
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'note', arguments: '{"x":1}' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: 'noted {"x":1}' },
  ])
})

test('the usage of all turns is summed, also if one reported none', async () => {
  const withoutUsage = saying('Done.').replace(/data: \{"choices":\[\],.*\n\n/, '')
  for (const [last, totalTokens] of [
    [saying('Done.'), 36],
    [withoutUsage, 24],
  ] as const) {
    const upstream = await upstreamThat(
      { body: calling(['a', 'note', '{}']) },
      { body: calling(['b', 'note', '{}']) },
      { body: last },
    )
    const events = await loopEvents({
      targets: [target(upstream.baseUrl)],
      hosted: hostedTools({ note: () => note() }),
    })
    expect(finish(events)).toMatchObject({ type: 'finish', reason: 'stop', usage: { totalTokens } })
  }
})

test('reasoning and text beside calls are emitted and part of the next turn', async () => {
  const body = calling(['a', 'note', '{}']).replace(
    'data: ',
    `data: {"choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}\n\ndata: {"choices":[{"index":0,"delta":{"content":"I look."}}]}\n\ndata: `,
  )
  const upstream = await upstreamThat({ body }, { body: saying('Done.') })
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note() }),
  })
  expect(types(events).filter((type) => type.endsWith('-start'))).toEqual([
    'generation-start',
    'reasoning-start',
    'text-start',
    'hosted-tool-start',
    'text-start',
  ])
  expect(JSON.parse(upstream.requests[1]?.body ?? '').messages[1]).toMatchObject({
    role: 'assistant',
    content: 'I look.',
    reasoning_content: 'Hm.',
  })
})

test('calls of one turn run concurrently up to the limit, and are emitted in order', async () => {
  const upstream = await upstreamThat(
    { body: calling(['a', 'note', '1'], ['b', 'note', '2'], ['c', 'note', '3']) },
    { body: saying('Done.') },
  )
  let running = 0
  let most = 0
  const gates = new Map<string, () => void>()
  const slow = () =>
    note({
      async run(args) {
        most = Math.max(most, ++running)
        await new Promise<void>((resolve) => {
          gates.set(args, resolve)
          // The second one is over before the first one.
          if (args === '2') resolve()
          if (gates.size === 3) for (const open of gates.values()) open()
        })
        running--
        return note().run(args, makeRequestContext())
      },
    })
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: slow }),
    limits: { hostedCallsAtOnceMax: 2 },
  })
  expect(most).toBe(2)
  expect(items(events).map((item) => item?.['args'])).toEqual(['1', '2', '3'])
})

test('with client calls in the same turn, hosted calls run and client calls are passed on', async () => {
  const upstream = await upstreamThat({
    body: calling(['a', 'note', '{}'], ['b', 'mine', '{"y":2}'], ['c', 'note', '{"z":3}']),
  })
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note() }),
    request: { tools: [functionTool('mine')] },
  })
  expect(types(events).filter((type) => type.endsWith('-end'))).toEqual([
    'hosted-tool-end',
    'tool-call-end',
    'hosted-tool-end',
  ])
  expect(events.find(({ type }) => type === 'tool-call-start')).toMatchObject({
    call: { callId: 'b', name: 'mine' },
  })
  expect(finish(events)).toMatchObject({ reason: 'tool-calls' })
  expect(upstream.requests).toHaveLength(1)
})

test('a call that needs the client ends the response', async () => {
  const upstream = await upstreamThat({ body: calling(['a', 'ask', '{"q":1}']) })
  const ask = () => note({ streamsArguments: false, isCounted: false, stages: [], result: null })
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ ask }),
  })
  expect(events[1]).toMatchObject({ type: 'hosted-tool-start', item: { args: '{"q":1}' } })
  expect(finish(events)).toMatchObject({ reason: 'stop' })
})

test('the model is informed of a tool that throws', async () => {
  const upstream = await upstreamThat(
    { body: calling(['a', 'note', '{}']) },
    { body: saying('Oh.') },
  )
  const run = () => Promise.reject(new Error('a fault'))
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note({ run }) }),
  })
  expect(items(events)).toMatchObject([{ refused: 'The tool failed.' }])
  expect(upstream.requests[1]?.body).toContain('The tool failed.')
  expect(texts(events)).toBe('Oh.')
})

test('everything is closed at the end, and when the reader cancels', async () => {
  let closed = 0
  const hosted = hostedTools({ note: () => note() }, { closed: () => closed++ })
  const upstream = await upstreamThat(
    { body: calling(['a', 'note', '{}']) },
    { body: saying('Done.') },
  )
  await loopEvents({ targets: [target(upstream.baseUrl)], hosted })
  expect(closed).toBe(1)
  const { batches, inference } = loop({ targets: [target(upstream.baseUrl)], hosted })
  for await (const _ of batches) break
  expect([closed, inference.running()]).toEqual([2, 0])
})
