import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { asRecord, parseJson } from '#lib/json.ts'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { checkStream } from '#test/support/response-frames.ts'
import { openSocket } from '#test/support/socket-client.ts'
import { startEcho } from './world.ts'

/** Hooks of the configuration, on every surface. The upstream repeats what it is asked. */

const sample = join(import.meta.dir, '../support/sample-hook/program.ts')
const hookOn = (stage: string) => ({
  name: stage,
  module: sample,
  models: [`${stage}-*`],
  deadlineMs: 100,
  options: { stages: [stage] },
})

const echo = startEcho()
let gateway: Gateway
let openai: OpenAI
let anthropic: Anthropic

beforeAll(async () => {
  gateway = await startGateway({
    upstream: [
      {
        name: 'echo',
        url: echo.url,
        models: ['plain', 'before-m', 'output-m', 'after-m', 'moderated', 'grouped'],
      },
    ],
    stream: { heartbeatMs: 20 },
    hook: [
      hookOn('before'),
      hookOn('output'),
      hookOn('after'),
      { ...hookOn('before'), name: 'grouped', models: ['grouped'], groups: ['checked'] },
      { name: 'moderation', models: ['moderated'], options: { upstream: 'echo' } },
    ],
  })
  openai = await gateway.openai()
  anthropic = new Anthropic({
    baseURL: `${gateway.url}/compat`,
    authToken: await gateway.token(),
    apiKey: null,
    maxRetries: 0,
  })
})
afterAll(async () => {
  await gateway.stop()
  await echo.stop()
})

const respond = (model: string, input: string, more: object = {}) =>
  openai.responses.create({ model, input, store: false, ...more, stream: false }).then(
    ({ output_text: text }) => text,
    ({ status, code }) => `${status} ${code}`,
  )
const say = (model: string, content: string) =>
  anthropic.messages.create({ model, max_tokens: 100, messages: [{ role: 'user', content }] }).then(
    ({ content: [block] }) => (block?.type === 'text' ? block.text : ''),
    ({ status, error }) => `${status} ${error.error.type}: ${error.error.message}`,
  )
const stream = async (body: object) =>
  checkStream(await (await gateway.post('/v1/responses', { ...body, stream: true })).text())

describe.each(['before', 'output', 'after'])('a hook %s', (stage) => {
  const model = `${stage}-m`

  test('lets texts pass, replaces and refuses them, on both surfaces', async () => {
    expect(await respond(model, 'hello')).toBe('hello')
    expect(await respond(model, 'a SECRET b')).toBe('a public b')
    expect(await respond(model, 'so FORBIDDEN')).toBe('400 content_refused')
    expect(await say(model, 'hello')).toBe('hello')
    expect(await say(model, 'a SECRET b')).toBe('a public b')
    expect(await say(model, 'so FORBIDDEN')).toBe('400 invalid_request_error: Not here.')
    if (stage === 'before') expect(echo.asked().join()).not.toContain('FORBIDDEN')
  })

  test.each([
    ['no verdict before its deadline', 'HANG'],
    ['an exception', 'THROW'],
    ['a wrong verdict', 'NONSENSE'],
  ])('that fails with %s lets nothing pass', async (_, word) => {
    expect(await respond(model, `x ${word}`)).toBe('503 content_check_failed')
    expect(await say(model, `x ${word}`)).toContain('503 overloaded_error: The check')
    const body = { model, input: `x y ${word} z`, store: false, stream: true }
    const streamed = await (await gateway.post('/v1/responses', body)).text()
    expect(streamed).toContain('content_check_failed')
    expect(streamed).not.toContain(word)
  })

  test('applies to WebSockets', async () => {
    const headers = { authorization: `Bearer ${await gateway.token()}` }
    const socket = await openSocket(gateway.port, { headers })
    const turn = async (input: string) => {
      const { failure, response } = await socket.turn({ model, input })
      return (
        failure?.code ?? asRecord(asRecord(response)['error'])['code'] ?? JSON.stringify(response)
      )
    }
    expect(await turn('FORBIDDEN')).toBe('content_refused')
    expect(await turn('a SECRET')).toContain('a public')
    socket.socket.destroy()
  })
})

test('a stored response and its replay have only what a hook has let pass', async () => {
  const { frames, response } = await stream({ model: 'output-m', input: 'a SECRET b', store: true })
  expect(JSON.stringify(frames)).toContain('public')
  const id = String(asRecord(response)['id'])
  const stored = await (await gateway.request(`/v1/responses/${id}`)).text()
  const replay = await (
    await gateway.request(`/v1/responses/${id}?stream=true&starting_after=0`)
  ).text()
  for (const text of [JSON.stringify(frames), stored, replay]) {
    expect(text).toContain('public')
    // The request is stored as it was sent; it is not in these.
    expect(text).not.toContain('SECRET')
  }
})

test('a refusal in the middle ends a stream as failed, and is not stored', async () => {
  const input = 'well, WAIT FORBIDDEN words'
  const body = { model: 'output-m', input, stream: true, store: true }
  const reading = readEvents(await gateway.post('/v1/responses', body))
  await reading.until(/well, /)
  echo.release()
  const { frames, response } = checkStream(await reading.whole())
  expect(frames.at(-1)?.type).toBe('response.failed')
  expect(asRecord(response)['error']).toMatchObject({
    code: 'content_refused',
    message: 'Not here.',
  })
  const id = String(asRecord(response)['id'])
  const stored = await (await gateway.request(`/v1/responses/${id}`)).text()
  expect(stored).toContain('well, ')
  expect(JSON.stringify(frames) + stored).not.toContain('FORBIDDEN')
  const events: string[] = []
  const failed = anthropic.messages.stream({
    model: 'output-m',
    max_tokens: 100,
    messages: [{ role: 'user', content: input }],
  })
  failed.on('text', (text) => {
    if (text.includes('well, ')) echo.release()
  })
  failed.on('streamEvent', (event) => events.push(JSON.stringify(event)))
  const error = await failed.finalMessage().catch((reason) => reason)
  expect(String(error.message)).toContain('Not here.')
  expect(events.join()).toContain('well, ')
  expect(events.join()).not.toContain('FORBIDDEN')
})

test('heartbeats are sent while output is held, and nothing of it', async () => {
  const response = await gateway.post('/v1/responses', {
    model: 'after-m',
    input: 'held words WAIT end',
    stream: true,
    store: false,
  })
  const reading = readEvents(response)
  await reading.until(/(response\.in_progress[\s\S]*){6}/)
  expect(reading.text()).not.toContain('held')
  echo.release()
  const { response: last } = checkStream(await reading.whole())
  expect(JSON.stringify(last)).toContain('held words')
})

test('applies by model and group', async () => {
  expect(await respond('plain', 'FORBIDDEN')).toBe('FORBIDDEN')
  expect(await respond('grouped', 'FORBIDDEN')).toBe('FORBIDDEN')
  const token = await gateway.token(['users', 'checked'], 'other')
  const refused = await fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'grouped', input: 'FORBIDDEN', store: false }),
  })
  expect(refused.status).toBe(400)
})

test('applies to agents', async () => {
  const created = await gateway.post('/v1/agents', {
    name: 'Guarded',
    model: 'before-m',
    instructions: 'You are FORBIDDEN.',
  })
  const { id } = asRecord(parseJson(await created.text()))
  expect(await respond(String(id), 'hello')).toBe('400 content_refused')
})

test('a background response is checked', async () => {
  const created = await openai.responses.create({
    model: 'after-m',
    input: 'so FORBIDDEN',
    background: true,
  })
  let response = created
  await eventually('it ends', async () => {
    response = await openai.responses.retrieve(created.id)
    return response.status === 'failed'
  })
  expect(response.error).toMatchObject({ code: 'content_refused' })
  expect(JSON.stringify(response.output)).toBe('[]')
})

describe('the moderation endpoint', () => {
  test('is asked about the request and the whole output, once for each text', async () => {
    const before = echo.moderated().length
    expect(await respond('moderated', 'fine words')).toBe('fine words')
    // The output repeats the request.
    expect(echo.moderated().slice(before)).toEqual([['fine words']])
    expect(await respond('moderated', 'FLAGGED words')).toBe('400 content_refused')
    expect(await say('moderated', 'FLAGGED words')).toBe(
      '400 invalid_request_error: The request was refused: violence.',
    )
    expect(echo.asked()).not.toContain('FLAGGED words')
  })

  test('lets nothing pass while it fails', async () => {
    echo.state.moderationStatus = 500
    expect(await respond('moderated', 'new words')).toBe('503 content_check_failed')
    echo.state.moderationStatus = 200
    expect(await respond('moderated', 'new words')).toBe('new words')
  })

  test('metrics and logs have the outcomes without texts', async () => {
    const metrics = await (await gateway.request('/metrics')).text()
    for (const outcome of ['allowed', 'refused', 'failed']) {
      expect(metrics).toContain(
        `sluice_hook_checks_total{hook="moderation",stage="before",outcome="${outcome}"}`,
      )
    }
    expect(gateway.logLines.join('\n')).not.toContain('FLAGGED')
  })
})
