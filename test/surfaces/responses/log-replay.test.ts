import { expect, test } from 'bun:test'
import type { EventBatch } from '#inference/events.ts'
import { AppError } from '#lib/errors.ts'
import { renderEndedStream } from '#surfaces/responses/ended-stream.ts'
import { doneFrame } from '#surfaces/responses/frames.ts'
import { createLogReplay } from '#surfaces/responses/log-replay.ts'
import { showResponse } from '#surfaces/responses/show.ts'
import { planOf } from '#test/responses/runs-fixture.ts'
import { checkStream } from '#test/support/response-frames.ts'

/** A log that ends after any event is continued as its renderer would end it. */

const lost = new AppError('worker_lost', 'The worker that ran the response stopped unexpectedly.')
const call = { callId: 'call_1', name: 'get', arguments: '' }
const mcp = {
  type: 'mcp_call',
  server_label: 's',
  name: 'find',
  arguments: '',
  status: 'in_progress',
}

const generations: Readonly<Record<string, EventBatch>> = {
  'a message': [
    { type: 'text-start', block: 0, form: 'answer' },
    { type: 'text-delta', block: 0, text: 'one "two"\n\n' },
    {
      type: 'citation',
      block: 0,
      citation: { kind: 'url', url: 'https://a.test', title: 'A', startIndex: 0, endIndex: 3 },
    },
    { type: 'text-delta', block: 0, text: 'three\u2028 😀' },
    { type: 'text-end', block: 0, complete: true },
  ],
  'token probabilities': [
    { type: 'text-start', block: 0, form: 'answer' },
    {
      type: 'text-delta',
      block: 0,
      text: 'a',
      logprobs: [{ token: 'a', logprob: -1, bytes: [97], top: [] }],
    },
    { type: 'text-end', block: 0, complete: true },
  ],
  'a refusal': [
    { type: 'text-start', block: 0, form: 'refusal' },
    { type: 'text-delta', block: 0, text: 'no' },
    { type: 'text-end', block: 0, complete: true },
  ],
  'a summary of two parts': [
    { type: 'reasoning-start', block: 0, form: 'summary' },
    { type: 'reasoning-delta', block: 0, part: 0, text: 'first' },
    { type: 'reasoning-delta', block: 0, part: 1, text: 'second ' },
    { type: 'reasoning-delta', block: 0, part: 1, text: 'thought' },
    { type: 'reasoning-end', block: 0, complete: true },
  ],
  'a tool call': [
    { type: 'tool-call-start', block: 0, call: { ...call, form: 'function' } },
    { type: 'tool-call-delta', block: 0, text: '{"a":' },
    { type: 'tool-call-delta', block: 0, text: '1}' },
    { type: 'tool-call-end', block: 0, complete: true },
  ],
  'a custom tool call': [
    { type: 'tool-call-start', block: 0, call: { ...call, form: 'custom' } },
    { type: 'tool-call-delta', block: 0, text: 'ls -l' },
    { type: 'tool-call-end', block: 0, complete: true },
  ],
  'a hosted tool': [
    { type: 'hosted-tool-start', block: 0, item: mcp },
    { type: 'hosted-tool-progress', block: 0, stage: 'in_progress' },
    { type: 'hosted-tool-delta', block: 0, text: '{"q":1}' },
    {
      type: 'hosted-tool-end',
      block: 0,
      item: { ...mcp, arguments: '{"q":1}', status: 'completed' },
    },
  ],
}

const json = (value: unknown) => JSON.parse(JSON.stringify(value))

test.each(Object.keys(generations))('%s, after any of its events', (name) => {
  const events = generations[name] ?? []
  for (let count = 0; count <= events.length; count++) {
    const { renderer } = planOf(async function* () {})
    let logged = renderer.push([{ type: 'generation-start' }])
    for (const event of events.slice(0, count)) logged += renderer.push([event])
    const replay = createLogReplay()
    for (const frame of logged.split(/(?<=\n\n)/)) replay.add(frame)
    const closing = replay.close(renderer.nextSequence())
    const ending = renderer.fail(lost)
    expect(ending).toStartWith(closing)
    expect(ending.slice(closing.length)).toStartWith('event: error\n')
    expect(json(replay.output())).toEqual(json(renderer.stored().output))
  }
})

const finish = { type: 'finish', reason: 'stop', rawReason: 'stop', usage: null } as const

test.each(Object.keys(generations))('%s, as a stream made of the ended response', (name) => {
  const events = generations[name] ?? []
  for (let count = 0; count <= events.length; count++) {
    const { renderer } = planOf(async function* () {})
    renderer.push([{ type: 'generation-start' }, ...events.slice(0, count)])
    if (count === events.length) renderer.push([finish])
    else renderer.fail(lost)
    const stored = renderer.stored()
    const { frames: wire, first, last } = renderEndedStream(stored)
    const { frames, response } = checkStream(wire + doneFrame)
    expect([first, last]).toEqual([0, frames.length - 1])
    expect(response).toEqual(json(showResponse(stored, [])))
  }
})
