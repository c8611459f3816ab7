import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { zodOutputFormat as olderZodOutputFormat } from '@anthropic-ai/sdk-0137/helpers/zod'
import { z } from 'zod'
import {
  type MessageClients,
  scriptedAnswer,
  sdkMatrix,
  startMessageClients,
} from '#test/support/message-clients.ts'
import { unfinishedResponse } from '#test/support/unfinished-response.ts'

/** Stop sequences and output formats in the `@anthropic-ai/sdk` package. */

let world: MessageClients
beforeAll(async () => {
  world = await startMessageClients()
})
afterAll(() => world.stop())
afterEach(() => world.upstream.answer(scriptedAnswer))

const hello = { max_tokens: 100, messages: [{ role: 'user' as const, content: 'Say hello.' }] }
const textOf = ({ content }: Pick<Anthropic.Message, 'content'>) =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('')

describe.each(sdkMatrix)('the package $sdk over a $kind upstream', (row) => {
  const { sdk, Sdk, kind, model } = row
  let client: Anthropic
  beforeAll(() => {
    client = world.client(Sdk)
  })
  const whole = kind === 'demo' ? 'You said: Say hello.' : 'Hello wörld'
  const [sequence, before] = kind === 'demo' ? ['ay hel', 'You said: S'] : ['o wör', 'Hell']

  test.each([false, true])(
    'truncates output before a stop sequence, and reports the sequence (stream: %p)',
    async (stream) => {
      const params = { ...hello, model, stop_sequences: ['never', sequence] }
      const message = stream
        ? await client.messages.stream(params).finalMessage()
        : await client.messages.create(params)
      expect(textOf(message)).toBe(before)
      expect([message.stop_reason, message.stop_sequence]).toEqual(['stop_sequence', sequence])
    },
  )

  test('returns the complete output if no stop sequence occurs', async () => {
    const params = { ...hello, model, stop_sequences: ['wörlds', 'never', 'Say hello!'] }
    const message = await client.messages.stream(params).finalMessage()
    expect(textOf(message)).toStartWith(whole)
    expect([message.stop_reason, message.stop_sequence]).toEqual(['end_turn', null])
  })

  test('continues a prefilled message if the upstream supports it, and gets an error if not', async () => {
    const begun = { role: 'assistant' as const, content: 'Hello' }
    const messages = [...hello.messages, begun]
    const answer = await client.messages
      .create({ ...hello, model, messages })
      .catch((error) => error)
    if (kind === 'chat' || kind === 'responses') {
      expect(answer).toBeInstanceOf(Sdk.BadRequestError)
      expect(answer.message).toContain('the last message must be from the user')
    } else {
      expect(answer.stop_reason).toBe('end_turn')
      if (kind === 'messages') expect(world.asked()['messages']).toEqual(messages)
    }
  })

  test.each([false, true])('parses output by a schema (stream: %p)', async (stream) => {
    const define =
      sdk === '0.137'
        ? (olderZodOutputFormat as unknown as typeof zodOutputFormat)
        : zodOutputFormat
    const format = define(z.object({ answer: z.number() }))
    const params = { ...hello, model, output_config: { format } }
    const { parsed_output: parsed } = stream
      ? await client.messages.stream(params).finalMessage()
      : await client.messages.parse(params)
    expect(typeof parsed?.answer).toBe('number')
  })
})

/** A native Messages upstream matches the sequences and validates the format itself. */
const translated = sdkMatrix.filter(({ kind }) => kind === 'chat' || kind === 'responses')

describe.each(translated)('the package $sdk over a $kind upstream', ({ Sdk, kind, model }) => {
  test('aborts the upstream request at the stop sequence', async () => {
    const { aborted } = world.upstream.connections
    world.upstream.answer(unfinishedResponse(kind, ['one two E', 'ND three']))
    const params = { ...hello, model, stop_sequences: ['END'] }
    const message = await world.client(Sdk).messages.stream(params).finalMessage()
    expect(textOf(message)).toBe('one two ')
    expect([message.stop_reason, message.stop_sequence]).toEqual(['stop_sequence', 'END'])
    await world.upstream.until(({ connections }) => connections.aborted > aborted)
  })

  test('reports output that does not conform to the schema', async () => {
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
    const format = { type: 'json_schema' as const, schema }
    const params = { ...hello, model, output_config: { format } }
    const failure = await world
      .client(Sdk)
      .messages.create(params)
      .catch((error) => error)
    expect(failure).toBeInstanceOf(Sdk.InternalServerError)
    expect(failure.error.error.type).toBe('api_error')
  })
})
