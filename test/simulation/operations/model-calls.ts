import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { checkEventStream } from '#test/support/checked-fetch.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'
import { type Client, Refused, type Reply } from '../client.ts'
import { ViolationError } from '../record.ts'
import { outputOf, type Prompt, promptText } from '../site/model-output.ts'
import type { World } from '../world.ts'
import type { OperationKind, Scene } from './operation.ts'

/** Calls that leave nothing behind but their usage. */
export const modelCalls: readonly OperationKind[] = [
  { kind: 'response', weight: 6, play: (scene) => respond(scene, { store: false }) },
  {
    kind: 'streamed response',
    weight: 8,
    play: (scene) => respond(scene, { store: false, stream: true }),
  },
  { kind: 'message', weight: 4, play: (scene) => message(scene, false) },
  { kind: 'streamed message', weight: 5, play: (scene) => message(scene, true) },
  { kind: 'disconnect', weight: 4, play: disconnect },
  { kind: 'embedding', weight: 3, play: embed },
  { kind: 'rerank', weight: 2, play: rerank },
  { kind: 'token count', weight: 1, play: countTokens },
  { kind: 'model list', weight: 2, play: listModels },
]

/** Most calls go well upstream; some fail before or in the middle. */
export function drawPrompt(client: Client): Prompt {
  const chance = client.random()
  if (client.isCalm) return client.prompt()
  return client.prompt(chance < 0.06 ? 'error' : chance < 0.12 ? 'cut' : 'well')
}

/** The terminal response of a stream; throws if it is not exactly one after a valid stream. */
export async function readStream(text: string, startingAfter: number | null): Promise<JsonObject> {
  await validate(() => checkEventStream(text, startingAfter), text)
  const frames = text
    .split('\n\n')
    .map((block) => asRecord(parseJson(block.slice(block.indexOf('data: ') + 6))))
  return asRecord(frames.findLast((frame) => frame['response'] !== undefined)?.['response'])
}

async function validate(check: () => unknown, text: string): Promise<void> {
  try {
    await check()
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n').slice(0, 8).join(' ') : error
    throw new ViolationError('each stream has exactly one end', `${reason}: …${text.slice(-600)}`)
  }
}

/** The output of a completed response is that of the model; others have an error or a reason. */
export function checkResponse(prompt: Prompt, response: JsonObject): void {
  const status = String(response['status'])
  const text = textOf(response)
  const isBeginning = outputOf(prompt).startsWith(text)
  if (status === 'completed' || !isBeginning) requireOutput(prompt, text)
  if (status === 'completed') return
  const { error, incomplete_details } = response
  if ((status === 'failed' && error) || (status === 'incomplete' && incomplete_details)) return
  if (status === 'cancelled') return
  throw new ViolationError('a response ends with a reason', JSON.stringify(response).slice(0, 600))
}

export function requireOutput(prompt: Prompt, text: string): void {
  if (text === outputOf(prompt)) return
  const detail = `"${text.slice(0, 200)}" (${text.length} characters) for ${promptText(prompt)}`
  throw new ViolationError('output is that of the model', detail)
}

export function textOf({ output }: JsonObject): string {
  const items = Array.isArray(output) ? output : []
  return items
    .flatMap((item) => asRecord(item)['content'] ?? [])
    .map((part) => String(asRecord(part)['text'] ?? ''))
    .join('')
}

/** A call that the gateway acknowledged as completed is in the ledger. */
export function expectRecord(
  { world, client }: { world: World; client: Client },
  reply: Pick<Reply, 'headers'>,
  kind: string,
): void {
  const requestId = reply.headers.get('x-request-id')
  if (requestId === null) throw new ViolationError('each reply has a request id', kind)
  world.calls.set(requestId, { tenant: client.index, endedMs: performance.now(), kind })
}

async function respond(scene: Scene, fields: { store: boolean; stream?: boolean }): Promise<void> {
  const { client } = scene
  const prompt = drawPrompt(client)
  const reply = await client.send('/v1/responses', {
    json: { model: 'chat', input: promptText(prompt), ...fields },
  })
  if (reply.status !== 200) throw new Refused('/v1/responses', reply)
  const response = fields.stream
    ? await readStream(reply.text, null)
    : asRecord(parseJson(reply.text))
  checkResponse(prompt, response)
  if (response['status'] === 'completed') expectRecord(scene, reply, 'generation')
}

async function message(scene: Scene, stream: boolean): Promise<void> {
  const { client } = scene
  const prompt = drawPrompt(client)
  const reply = await client.send('/compat/v1/messages', {
    json: {
      model: 'chat',
      max_tokens: 1_000,
      messages: [{ role: 'user', content: promptText(prompt) }],
      stream,
    },
  })
  if (reply.status !== 200) throw new Refused('/compat/v1/messages', reply)
  const read = () => {
    if (!stream) return { message: asRecord(parseJson(reply.text)), error: null }
    return checkMessageStream(reply.text)
  }
  await validate(read, reply.text)
  const { message: result, error } = read()
  if (error !== null || result === null) return
  requireOutput(prompt, textOf({ output: [result] }))
  expectRecord(scene, reply, 'generation')
}

async function disconnect({ client }: Scene): Promise<void> {
  const stored = client.random() < 0.5
  const json = { model: 'chat', input: promptText(client.prompt('well', 60)), stream: true }
  const readBytesMax = 1 + client.below(6_000)
  await client.send('/v1/responses', { json: { ...json, store: stored }, readBytesMax })
}

async function embed(scene: Scene): Promise<void> {
  const { client } = scene
  const json = { model: 'embedder', input: [promptText(client.prompt())] }
  const reply = await client.send('/v1/embeddings', { json })
  if (reply.status !== 200) throw new Refused('/v1/embeddings', reply)
  const { data } = asRecord(parseJson(reply.text))
  if (!Array.isArray(data) || data.length !== 1) {
    throw new ViolationError('each input has an embedding', reply.text.slice(0, 200))
  }
  expectRecord(scene, reply, 'embedding')
}

async function rerank(scene: Scene): Promise<void> {
  const { client } = scene
  const documents = ['one', 'two', 'three']
  const json = { model: 'ranker', query: promptText(client.prompt()), documents }
  const reply = await client.send('/v1/rerank', { json })
  if (reply.status !== 200) throw new Refused('/v1/rerank', reply)
  expectRecord(scene, reply, 'rerank')
}

async function countTokens({ client }: Scene): Promise<void> {
  const messages = [{ role: 'user', content: promptText(client.prompt()) }]
  const counted = await client.json('/compat/v1/messages/count_tokens', {
    json: { model: 'chat', messages },
  })
  if (!(Number(counted['input_tokens']) > 0)) {
    throw new ViolationError('a text has tokens', JSON.stringify(counted))
  }
}

async function listModels({ client }: Scene): Promise<void> {
  const path = client.random() < 0.5 ? '/v1/models' : '/compat/v1/models'
  const list = JSON.stringify(await client.json(path))
  if (!list.includes('chat')) throw new ViolationError('configured models are listed', list)
}
