import { expect, test } from 'bun:test'
import { type EventBatch, usageOfTokens } from '#inference/events.ts'
import { withForcedCall } from '#inference/forced-call.ts'
import type { GenerationRequest, ToolChoice } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'
import { makeRequest, makeRequestContext } from '#test/support/generation.ts'

/** Which generations are repeated because a required call is missing. */
const usage = usageOfTokens(7, 3)
const begin: EventBatch = [{ type: 'generation-start' }]
const finish = (reason: 'stop' | 'length' | 'content-filter' | 'tool-calls'): EventBatch => [
  { type: 'finish', reason, rawReason: null, usage },
]
const says: EventBatch[] = [
  begin,
  [
    { type: 'text-start', block: 0, form: 'answer' },
    { type: 'text-delta', block: 0, text: 'No.' },
    { type: 'text-end', block: 0, complete: true },
  ],
  finish('stop'),
]
const calls = (name: string): EventBatch[] => [
  begin,
  [
    { type: 'tool-call-start', block: 0, call: { form: 'function', callId: 'c', name } },
    { type: 'tool-call-delta', block: 0, text: '{}' },
    { type: 'tool-call-end', block: 0, complete: true },
  ],
  finish('tool-calls'),
]
const get: ToolChoice = { type: 'tool', form: 'function', name: 'get' }

/** The events of a generation, the last one of the given ones is repeated; and its requests. */
async function generate(given: Partial<GenerationRequest>, ...answers: (readonly EventBatch[])[]) {
  const requests: GenerationRequest[] = []
  const forced = withForcedCall(async function* ({ request }) {
    requests.push(request)
    yield* answers[Math.min(requests.length, answers.length) - 1] ?? []
  })
  const job = {
    request: makeRequest(given),
    targets: [],
    streamed: true,
    context: makeRequestContext(),
  }
  const events = await Array.fromAsync(forced(job)).then((batches) => batches.flat())
  return { requests, events }
}

const once: [string, EventBatch[]][] = [
  ['a refusal', [begin, [{ type: 'text-start', block: 0, form: 'refusal' }], finish('stop')]],
  ['a truncated response', [begin, finish('length')]],
  ['a filtered response', [begin, finish('content-filter')]],
  ['an error', [begin, [{ type: 'error', error: new AppError('internal_error', 'x') }]]],
  [
    'a call of a hosted tool',
    [begin, [{ type: 'hosted-tool-start', block: 0, item: { type: 'mcp_call' } }], finish('stop')],
  ],
]

test.each(once)('%s passes unchanged without a second attempt', async (_, answer) => {
  for (const toolChoice of [get, { type: 'required' } as const]) {
    const { requests, events } = await generate({ toolChoice }, answer)
    expect(requests).toHaveLength(1)
    expect(events).toEqual(answer.flat())
  }
})

test('a text instead of a call is asked for again, with the tool and the usage of both', async () => {
  const { requests, events } = await generate({ toolChoice: get }, says, calls('get'))
  expect(JSON.stringify(requests[1]?.items)).toContain('call the tool get now')
  expect(events.slice(0, -1)).toEqual(calls('get').flat().slice(0, -1))
  expect(events.at(-1)).toMatchObject({ usage: usageOfTokens(14, 6) })
})

test('a call of another tool is enough unless one was named', async () => {
  const required = await generate({ toolChoice: { type: 'required' } }, calls('put'))
  expect(required.requests).toHaveLength(1)
  const named = await generate({ toolChoice: get }, calls('put'), calls('get'))
  expect(named.requests).toHaveLength(2)
})

test('a model that never calls fails after two attempts, by name of what is missing', async () => {
  const ask = (toolChoice: ToolChoice) => generate({ toolChoice }, says)
  await expect(ask(get)).rejects.toThrow('did not call the tool get,')
  await expect(ask({ type: 'required' })).rejects.toThrow('did not call a tool,')
})

test('a free choice and a prefilled response are not enforced', async () => {
  for (const given of [{}, { toolChoice: get, prefilled: true }]) {
    const { requests, events } = await generate(given, says)
    expect(requests).toHaveLength(1)
    expect(events).toEqual(says.flat())
  }
})
