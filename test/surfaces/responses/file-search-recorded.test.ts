import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Response } from 'openai/resources/responses/responses'
import { ann, fillCollection } from '#test/support/fill-collection.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chatStream, recordedPayloads, sharedRecordingsExist } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'

/**
 * Recorded servers: their own calls of the search tool, and their own text with a citation marker.
 */

let gateway: Gateway
let upstream: ReplayUpstream
beforeAll(async () => {
  upstream = await startReplayUpstream({ body: '' })
  gateway = await startGateway({ upstream: [{ url: upstream.baseUrl, models: ['chat'] }] })
  const files = { 'cities.txt': 'San Francisco is on the bay.' }
  await fillCollection(gateway, ann, { name: 'docs', files })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

const tools = [{ type: 'file_search' as const, vector_store_ids: ['docs'] }]

/** The chunks of a call, and of a message. */
const recorded = (name: string) => ({
  call: recordedPayloads('chat-completions', `${name}-tool-call.chunks.txt`).map((payload) =>
    payload.replaceAll('"weather"', '"file_search"').replaceAll('location', 'query'),
  ),
  answer: recordedPayloads('chat-completions', `${name}-text.chunks.txt`),
})

/** With a marker before the first full stop. */
function marked(payloads: readonly string[]): string[] {
  const at = payloads.findIndex((payload) => /"content":"[^"]*\./.test(payload))
  return payloads.map((payload, index) =>
    index === at ? payload.replace(/("content":"[^".]*)\./, '$1 【1】.') : payload,
  )
}

function script(...answers: readonly (readonly string[])[]): void {
  const left = answers.map((payloads) => ({ body: chatStream(payloads) }))
  upstream.answer(() => left.shift() ?? { status: 500, body: '{}' })
}

function messageOf({ output }: Response) {
  const last = output.at(-1)
  const [part] = last?.type === 'message' ? last.content : []
  if (part?.type !== 'output_text') throw new Error('no text')
  return part
}

test.skipIf(!sharedRecordingsExist).each(['deepseek', 'alibaba', 'mistral'])(
  'a server like %s returns a citation, streamed or not',
  async (name) => {
    const client = await gateway.openai()
    const { call, answer } = recorded(name)
    const body = { model: 'chat', input: 'Where is it?', store: false }
    script(answer)
    const { text } = messageOf(await client.responses.create(body))
    const expected = { text, annotations: [{ filename: 'cities.txt', index: text.indexOf('.') }] }
    script(call, marked(answer))
    const whole = await client.responses.create({ ...body, tools })
    expect(whole.output.map(({ type }) => type)).toContain('file_search_call')
    expect(messageOf(whole)).toMatchObject(expected)
    script(call, marked(answer))
    const streamed = await client.responses.stream({ ...body, tools }).finalResponse()
    expect(messageOf(streamed)).toMatchObject(expected)
  },
)
