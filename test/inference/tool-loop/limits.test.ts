import { afterEach, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { makeRequest } from '#test/support/generation.ts'
import { stopUpstreams, target, texts, upstreamThat } from '#test/support/generations.ts'
import { calling, functionTool, hostedTools, loopEvents, note, saying } from './looping.ts'

afterEach(stopUpstreams)

const items = (events: readonly GenerationEvent[]) =>
  events.flatMap((event) => (event.type === 'hosted-tool-end' ? [event.item] : []))
const refused = (events: readonly GenerationEvent[]) =>
  items(events).map((item) => item?.['refused'])
const toolsOf = ({ body }: { body: string }): string[] =>
  (JSON.parse(body).tools ?? []).map((tool: { function: { name: string } }) => tool.function.name)

const tooMany = 'The tool was not run: this response may not call any more tools. Answer without.'

test('once max_tool_calls is reached, hosted tools are not offered any more', async () => {
  const upstream = await upstreamThat(
    { body: calling(['a', 'note', '{}']) },
    { body: calling(['b', 'note', '{}'], ['c', 'note', '{}']) },
    { body: saying('Done.') },
  )
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note() }),
    request: { tools: [functionTool('mine')] },
    limits: { maxToolCalls: 2 },
  })
  expect(refused(events)).toEqual([undefined, undefined, tooMany])
  expect(upstream.requests.map(toolsOf)).toEqual([['mine', 'note'], ['mine', 'note'], ['mine']])
  expect(texts(events)).toBe('Done.')
})

test('a model that always calls tools is stopped at the turn limit', async () => {
  let count = 0
  const upstream = await upstreamThat({})
  upstream.answer(() => ({ body: calling([`call_${count++}`, 'note', '{}']) }))
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note() }),
    limits: { turnsMax: 3 },
  })
  expect(upstream.requests.map(toolsOf)).toEqual([['note'], ['note'], []])
  expect(refused(events)).toEqual([undefined, undefined, tooMany])
  expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'stop' })
})

test('calls of a truncated response are not run', async () => {
  const cut = calling(['a', 'note', '{}'], ['b', 'note', '{"half":']).replace(
    'tool_calls"}]',
    'length"}]',
  )
  const upstream = await upstreamThat({ body: cut })
  let runs = 0
  const run = async () => {
    runs++
    return note().refuse('', '')
  }
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note({ run }) }),
  })
  expect(runs).toBe(0)
  expect(refused(events)).toEqual(['The tool was not run, because the response was truncated.'])
  expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'length' })
})

test('a call truncated while streaming is incomplete', async () => {
  const cut = calling(['a', 'note', '{"half":']).replace('tool_calls"}]', 'length"}]')
  const upstream = await upstreamThat({ body: cut })
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note() }),
  })
  expect(items(events)).toEqual([null])
  expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'length' })
})

test('the output limit holds for all turns together', async () => {
  const answers = [calling(['a', 'note', '{}']), calling(['b', 'note', '{}'])]
  const upstream = await upstreamThat(...answers.map((body) => ({ body })))
  const { sampling } = makeRequest()
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note() }),
    request: { sampling: { ...sampling, maxOutputTokens: 4 } },
  })
  expect(upstream.requests.map(({ body }) => JSON.parse(body).max_tokens)).toEqual([4, 2])
  expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'length' })
})

test('a required call applies to the first turn only', async () => {
  for (const toolChoice of [
    { type: 'required' },
    { type: 'tool', name: 'note', form: 'function' },
    { type: 'allowed', mode: 'required', tools: [{ name: 'note' }] },
  ] as const) {
    const upstream = await upstreamThat(
      { body: calling(['a', 'note', '{}']) },
      { body: saying('Done.') },
    )
    await loopEvents({
      targets: [target(upstream.baseUrl)],
      hosted: hostedTools({ note: () => note() }),
      request: { toolChoice },
    })
    const [first, second] = upstream.requests.map(({ body }) => JSON.parse(body).tool_choice)
    expect(first).toBeDefined()
    expect(second).toBeUndefined()
  }
})

test('tool results count towards the text limit', async () => {
  const upstream = await upstreamThat(
    { body: calling(['a', 'note', '{}']) },
    { body: saying('Done.') },
  )
  const run = async () => ({
    item: { type: 'note_call', text: 'x'.repeat(2_000) },
    stage: null,
    result: '',
  })
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note({ run }) }),
    limits: { outputCharsMax: 1_000 },
  })
  expect(events.at(-1)).toMatchObject({
    type: 'error',
    error: {
      kind: 'upstream_invalid_answer',
      message: 'The response with its tool calls is longer than the limit of 1000 characters.',
    },
  })
})
