import { afterEach, expect, test } from 'bun:test'
import type { HostedCall } from '#inference/tool-loop/hosted-tools.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  begun,
  collect,
  failure,
  json,
  stopUpstreams,
  target,
  texts,
  upstreamThat,
} from '#test/support/generations.ts'
import { calling, hostedTools, loop, loopEvents, note, saying } from './looping.ts'

afterEach(stopUpstreams)

const refusing = { status: 401, headers: json, body: '{"error":{"message":"no"}}' }
const list: HostedCall = note({ isCounted: false, streamsArguments: false })
const listStep = { call: list, args: '', callId: null }
const waiting = { type: 'tool-call', callId: 'ok_1', name: 'note', form: 'function' } as const
const approvedStep = { call: note(), args: '{"a":1}', callId: 'ok_1' }

test('a failure of the first turn is thrown, also after a list of tools', async () => {
  const upstream = await upstreamThat(refusing)
  const hosted = hostedTools({ note: () => note() }, { opening: [listStep] })
  const { batches } = loop({ targets: [target(upstream.baseUrl)], hosted })
  expect(await failure(batches)).toMatchObject({ kind: 'upstream_refused' })
})

test('once an approved tool has run, a failure of the first turn is the last event', async () => {
  const upstream = await upstreamThat(refusing)
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note() }, { opening: [listStep, approvedStep] }),
    request: { items: [{ ...waiting, arguments: '{"a":1}' }] },
  })
  expect(events.map(({ type }) => type).filter((type) => !type.includes('progress'))).toEqual([
    'generation-start',
    'hosted-tool-start',
    'hosted-tool-end',
    'hosted-tool-start',
    'hosted-tool-delta',
    'hosted-tool-end',
    'error',
  ])
})

test('an approved call runs before the model, which receives its result after the call', async () => {
  const upstream = await upstreamThat({ body: saying('Done.') })
  const user = { type: 'message', role: 'user', parts: [{ type: 'text', text: 'And?' }] } as const
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note() }, { opening: [approvedStep] }),
    request: { items: [{ ...waiting, arguments: '{"a":1}' }, user] },
  })
  expect(texts(events)).toBe('Done.')
  expect(JSON.parse(upstream.requests[0]?.body ?? '').messages).toMatchObject([
    { role: 'assistant', tool_calls: [{ id: 'ok_1' }] },
    { role: 'tool', tool_call_id: 'ok_1', content: 'noted {"a":1}' },
    { role: 'user', content: 'And?' },
  ])
})

test('results of approved calls follow all calls of their turn', async () => {
  const answer = { output: [], status: 'completed', id: 'resp_1', usage: null }
  const body = `data: ${JSON.stringify({ type: 'response.completed', response: answer })}\n\n`
  const upstream = await upstreamThat({ body })
  const { upstream: settings, model } = target(upstream.baseUrl)
  const user = { type: 'message', role: 'user', parts: [{ type: 'text', text: 'And?' }] } as const
  const calls = ['ok_1', 'ok_2', 'ok_3'].map((callId) => ({ ...waiting, callId, arguments: '{}' }))
  await loopEvents({
    targets: [{ upstream: { ...settings, kind: 'responses' }, model }],
    hosted: hostedTools({ note: () => note() }, { opening: [{ ...approvedStep, callId: 'ok_2' }] }),
    request: { items: [user, ...calls, user] },
  })
  const { input } = JSON.parse(upstream.requests[0]?.body ?? '')
  expect(input.map(({ type, call_id }: JsonObject) => call_id ?? type)).toEqual([
    'message',
    'ok_1',
    'ok_2',
    'ok_3',
    'ok_2',
    'message',
  ])
})

test('a failure of a later turn is retried, then the last event', async () => {
  const passing = { status: 500, headers: json, body: '{"error":{"message":"later"}}' }
  const upstream = await upstreamThat({ body: calling(['a', 'note', '{}']) }, passing)
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note() }),
  })
  expect(events.at(-1)).toMatchObject({ type: 'error', error: { kind: 'upstream_error' } })
  expect(upstream.requests).toHaveLength(5)
})

test('a turn truncated in the middle of a call ends its item and the response', async () => {
  const whole = calling(['a', 'note', '{"x":1}'])
  const upstream = await upstreamThat({
    body: whole.slice(0, whole.indexOf('"tool_calls"}')),
    ending: 'cut',
  })
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note() }),
  })
  expect(events.slice(-2)).toMatchObject([
    { type: 'hosted-tool-end', item: null },
    { type: 'error', error: { kind: 'upstream_truncated' } },
  ])
})

test('an abort reaches a running tool, and ends the response even if the tool continues', async () => {
  const upstream = await upstreamThat({ body: calling(['a', 'note', '{}']) })
  const caller = new AbortController()
  let seen: AbortSignal | undefined
  const run: HostedCall['run'] = (_, context) => {
    seen = context.signal
    return new Promise(() => {})
  }
  const { batches, inference } = loop({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note({ run }) }),
    signal: caller.signal,
  })
  const events = collect(batches)
  await eventually('the tool runs', () => seen !== undefined)
  caller.abort(new AppError('client_closed', 'The client disconnected.'))
  expect((await events).slice(-2)).toMatchObject([
    { type: 'hosted-tool-end', item: null },
    { type: 'error', error: { kind: 'client_closed' } },
  ])
  expect([seen?.aborted, inference.running()]).toEqual([true, 0])
})

test('an abort reaches the model of a later turn', async () => {
  const upstream = await upstreamThat(
    { body: calling(['a', 'note', '{}']) },
    { body: begun, ending: 'hang' },
  )
  const caller = new AbortController()
  const { batches } = loop({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ note: () => note() }),
    signal: caller.signal,
  })
  const events = collect(batches)
  await upstream.until(({ requests }) => requests.length === 2)
  caller.abort()
  expect((await events).at(-1)).toMatchObject({ type: 'error', error: { kind: 'client_closed' } })
  await upstream.until(({ connections }) => connections.aborted === 1)
})
