import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import {
  type MessageClients,
  scriptedAnswer,
  startMessageClients,
} from '#test/support/message-clients.ts'
import { sendTurn, sessionBody, sessionHeaders } from './coding-session.ts'

/**
 * Inference servers cache prompt prefixes byte for byte, so a session that only grows must keep its
 * prefix.
 */

let world: MessageClients
beforeAll(async () => {
  world = await startMessageClients()
})
afterAll(() => world.stop())
afterEach(() => world.upstream.answer(scriptedAnswer))

const text = (words: string) => ({ type: 'text', text: words })
const result = (id: unknown, words: string) => ({
  type: 'tool_result',
  tool_use_id: id,
  content: words,
})
const callIds = ({ content }: JsonObject) =>
  (Array.isArray(content) ? content : [])
    .filter(isRecord)
    .flatMap(({ type, id }) => (type === 'tool_use' ? [id] : []))

/** What the user adds in each turn, and whether the model may call tools. */
type Turn = { callsTools: boolean; say: (answer: JsonObject) => JsonObject[] }

const turns: Turn[] = [
  {
    callsTools: true,
    say: () => [
      { role: 'user', content: 'parallel: look at both files.' },
      { role: 'system', content: 'The todo list is empty.' },
    ],
  },
  {
    callsTools: false,
    say: (answer) => [
      { role: 'user', content: callIds(answer).map((id) => result(id, 'a file')) },
      { role: 'system', content: [text('A file was changed by the user.')] },
    ],
  },
  {
    callsTools: false,
    say: () => [
      { role: 'system', content: 'Be brief from now on.' },
      { role: 'user', content: [text('think about it')] },
    ],
  },
  {
    callsTools: true,
    say: () => [{ role: 'user', content: [text('Look once more.'), text('Please.')] }],
  },
  {
    callsTools: false,
    say: (answer) => [
      {
        role: 'user',
        content: [
          ...callIds(answer).map((id) => ({ ...result(id, 'no file'), is_error: true })),
          text('And now recall it.'),
        ],
      },
    ],
  },
]

/** The upstream requests of the turns of one session, as sent. */
async function requestBodiesOf(model: string): Promise<string[]> {
  const headers = sessionHeaders(world.apiKey)
  const messages: JsonObject[] = []
  const requestBodies: string[] = []
  let answer: JsonObject = {}
  for (const [nonce, { say, callsTools }] of turns.entries()) {
    world.upstream.answer((request) => {
      requestBodies.push(request.body)
      const body = { ...JSON.parse(request.body), ...(callsTools ? {} : { tools: undefined }) }
      return scriptedAnswer({ ...request, body: JSON.stringify(body) })
    })
    messages.push(...say(answer))
    answer = await sendTurn(world.gateway, headers, sessionBody(model, messages, nonce))
    messages.push({ role: 'assistant', content: answer['content'] })
  }
  return requestBodies
}

/** The conversation of a body as text, up to where it may continue. */
function conversationIn(body: string, field: string): string {
  const parsed: unknown = JSON.parse(body)
  const { [field]: conversation } = asRecord(parsed)
  const marks = /,"cache_control":\{"type":"ephemeral"\}/g
  return JSON.stringify(conversation).slice(0, -1).replace(marks, '')
}

const kinds = [
  { model: 'chat', field: 'messages', thoughts: 'reasoning_content' },
  { model: 'responses', field: 'input', thoughts: 'reasoning_text' },
  { model: 'messages', field: 'messages', thoughts: 'signature' },
]

test.each(kinds)('a growing session keeps its prompt prefix on $model', async (kind) => {
  const { model, field, thoughts } = kind
  const requestBodies = await requestBodiesOf(model)
  expect(requestBodies).toHaveLength(turns.length)
  const conversations = requestBodies.map((body) => conversationIn(body, field))
  for (const [at, conversation] of conversations.entries()) {
    if (at > 0) expect(conversation).toStartWith(conversations[at - 1] ?? '')
  }
  const whole = conversations.at(-1)
  for (const part of [thoughts, 'a file', 'no file', 'A file was changed', 'Be brief']) {
    expect(whole).toContain(part)
  }
  const [first, ...others] = requestBodies.map((body) => {
    const { [field]: _, ...rest } = asRecord(JSON.parse(body))
    return JSON.stringify(rest)
  })
  for (const other of others) expect(other).toBe(first ?? '')
})

test('ids that a client renews in each request are not part of the prompt', async () => {
  const headers = sessionHeaders(world.apiKey)
  for (const { model } of kinds) {
    const requestBodies: unknown[] = []
    for (const nonce of [1, 2]) {
      const said = [{ role: 'user', content: 'Say hello.' }]
      await sendTurn(world.gateway, headers, sessionBody(model, said, nonce))
      requestBodies.push(world.upstream.requests.at(-1)?.body)
    }
    expect(requestBodies[1]).toBe(requestBodies[0])
  }
})
