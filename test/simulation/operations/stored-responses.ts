import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { openSocket } from '#test/support/socket-client.ts'
import { Broken, type Client, operationMsMax, Refused, requireOwnCanaries } from '../client.ts'
import { ViolationError } from '../record.ts'
import { outputOf, type Prompt, promptText } from '../site/model-output.ts'
import {
  checkResponse,
  drawPrompt,
  expectRecord,
  readStream,
  requireOutput,
} from './model-calls.ts'
import type { OperationKind, Scene } from './operation.ts'
import { openAnywhere, withDeadline } from './sockets.ts'

/** Responses that are stored: at once, in the background, resumed, over a WebSocket. */
export const storedResponses: readonly OperationKind[] = [
  { kind: 'stored response', weight: 6, play: storeOne },
  { kind: 'background response', weight: 6, play: runInBackground },
  { kind: 'resumed stream', weight: 6, play: resume },
  { kind: 'WebSocket', weight: 4, play: talk },
  { kind: 'conversation', weight: 2, play: converse },
  { kind: 'deleted response', weight: 2, play: deleteResponse },
]

const terminal = new Set(['completed', 'failed', 'incomplete', 'cancelled'])
const pollMs = 200
/** Afterwards the checks at the end find its outcome. */
const pollsMax = 25

/** Remembers a response that its client has seen completed and stored. */
function acknowledge({ world, client }: Scene, prompt: Prompt, response: JsonObject): void {
  const id = String(response['id'])
  client.facts.push(id)
  const known = { tenant: client.index, prompt, endedMs: performance.now() }
  world.accepted.delete(id)
  if (response['status'] === 'completed' && response['store'] !== false)
    world.responses.set(id, known)
}

/** Remembers a response that the gateway has accepted: it must end. */
function accept({ world, client }: Scene, prompt: Prompt, id: string): void {
  client.facts.push(id)
  world.accepted.set(id, { tenant: client.index, prompt, endedMs: performance.now() })
}

async function storeOne(scene: Scene): Promise<void> {
  const { client } = scene
  const prompt = drawPrompt(client)
  const stream = client.random() < 0.5
  const json = { model: 'chat', input: promptText(prompt), store: true, stream }
  const reply = await client.send('/v1/responses', { json })
  if (reply.status !== 200) throw new Refused('/v1/responses', reply)
  const response = stream ? await readStream(reply.text, null) : asRecord(parseJson(reply.text))
  checkResponse(prompt, response)
  acknowledge(scene, prompt, response)
  if (response['status'] === 'completed') expectRecord(scene, reply, 'generation')
}

async function runInBackground(scene: Scene): Promise<void> {
  const { client } = scene
  const prompt = drawPrompt(client)
  const json = { model: 'chat', input: promptText(prompt), store: true, background: true }
  const { id } = await client.json('/v1/responses', { json })
  accept(scene, prompt, String(id))
  scene.world.announced.set(String(id), client.index)
  const own = `/v1/responses/${id}`
  if (client.random() < 0.2) await client.json(`${own}/cancel`, { method: 'POST' })
  for (let polls = 0; polls < pollsMax; polls++) {
    const response = await client.json(own)
    if (terminal.has(String(response['status']))) {
      checkResponse(prompt, response)
      return acknowledge(scene, prompt, response)
    }
    await Bun.sleep(pollMs)
  }
}

/** Disconnects in the middle of a stream, and reads the rest from any worker. */
async function resume(scene: Scene): Promise<void> {
  const { client } = scene
  const prompt = client.prompt('well', 60)
  const json = { model: 'chat', input: promptText(prompt), store: true, stream: true }
  const begun = await client.send('/v1/responses', {
    json,
    readBytesMax: 2_000 + client.below(6_000),
  })
  if (begun.status !== 200) throw new Refused('/v1/responses', begun)
  const before = completeFrames(begun.text)
  const last = before.at(-1)
  const id = String(asRecord(before[0]?.['response'])['id'])
  if (last === undefined) return
  accept(scene, prompt, id)
  const path = `/v1/responses/${id}?stream=true&starting_after=${last['sequence_number']}`
  const rest = await client.send(path)
  // The terminal event was already in the first part.
  if (rest.status !== 200) throw new Refused(path, rest)
  const response = await readStream(rest.text, Number(last['sequence_number']))
  if (response['id'] !== undefined && terminal.has(String(response['status']))) {
    checkResponse(prompt, response)
    if (response['status'] === 'completed') {
      requireOutput(prompt, deltasOf([...before, ...completeFrames(rest.text)]))
    }
    acknowledge(scene, prompt, response)
  }
}

function completeFrames(wire: string): JsonObject[] {
  return wire
    .split('\n\n')
    .slice(0, -1)
    .map((block) => asRecord(parseJson(block.slice(block.indexOf('data: ') + 'data: '.length))))
    .filter((frame) => frame['type'] !== undefined)
}

function deltasOf(frames: readonly JsonObject[]): string {
  return frames
    .filter(({ type }) => type === 'response.output_text.delta')
    .map(({ delta }) => String(delta))
    .join('')
}

async function talk(scene: Scene): Promise<void> {
  const { client } = scene
  const headers = { authorization: `Bearer ${client.bearer}` }
  const socket = await openAnywhere(client, (port) => openSocket(port, { headers }))
  try {
    for (let turns = 1 + client.below(3); turns > 0; turns--) {
      const prompt = drawPrompt(client)
      const store = client.random() < 0.5
      const turn = socket.turn({ model: 'chat', input: promptText(prompt), store })
      const { response, failure } = await withDeadline(
        'a turn over a WebSocket',
        operationMsMax,
        turn,
      ).catch((error) => {
        // A turn that was cut is no valid stream.
        if (!socket.isClosed() || error instanceof ViolationError) throw error
        return { response: undefined, failure: undefined }
      })
      if (failure !== undefined) {
        const { status, code } = failure
        throw new Refused('WebSocket', {
          status: Number(status),
          text: JSON.stringify({ error: { code } }),
        })
      }
      // A close frame with a code is an explicit end.
      const closeCode = socket.closeCode()
      if (response === undefined && closeCode !== null) {
        throw new Refused('WebSocket', { status: 503, text: `close code ${closeCode}` })
      }
      if (response === undefined) throw new Broken('WebSocket closed')
      requireOwnCanaries(client, 'a WebSocket', JSON.stringify(response))
      checkResponse(prompt, response)
      if (store) acknowledge(scene, prompt, response)
    }
  } finally {
    socket.socket.destroy()
  }
}

/** The items of completed turns are in the conversation, in their order. */
async function converse(scene: Scene): Promise<void> {
  const { client } = scene
  const { id } = await client.json('/v1/conversations', { json: {} })
  const prompts: Prompt[] = []
  for (let turns = 1 + client.below(2); turns > 0; turns--) {
    const prompt = client.prompt()
    const json = { model: 'chat', input: promptText(prompt), conversation: id }
    const response = await client.json('/v1/responses', { json })
    if (response['status'] !== 'completed' || response['store'] === false) return
    prompts.push(prompt)
  }
  const items = JSON.stringify(
    await client.json(`/v1/conversations/${id}/items?limit=100&order=asc`),
  )
  const positions = prompts.map((prompt) => items.indexOf(outputOf(prompt)))
  if (
    positions.includes(-1) ||
    positions.toSorted((one, other) => one - other).join() !== positions.join()
  ) {
    throw new ViolationError('a conversation has its turns in order', `${id}: ${positions}`)
  }
}

async function deleteResponse({ client, world }: Scene): Promise<void> {
  const id = ownResponse(world.responses, client)
  if (id === undefined) return
  world.responses.delete(id)
  await client.json(`/v1/responses/${id}`, { method: 'DELETE' })
  const { status } = await client.send(`/v1/responses/${id}`)
  if (status === 200) throw new ViolationError('a deleted response is gone', id)
}

function ownResponse(
  responses: ReadonlyMap<string, { readonly tenant: number }>,
  client: Client,
): string | undefined {
  const own = [...responses].filter(([, { tenant }]) => tenant === client.index)
  return own[client.below(own.length)]?.[0]
}
