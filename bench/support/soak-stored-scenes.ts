import type { JsonObject } from '#lib/json.ts'
import { leaveAfter, type Scene, type SoakClient, until } from './soak-client.ts'
import type { Outcome } from './soak-job.ts'
import {
  below,
  drawGoodPlan,
  drawPlan,
  matches,
  pick,
  plainPlan,
  type SoakPlan,
} from './soak-plan.ts'
import {
  classifyOutcome,
  eventsOf,
  type ModelResponse,
  models,
  question,
  readResponse,
  requestModel,
} from './soak-responses.ts'

/** Scenes with stored responses: retrieved, resumed, in the background, in conversations. */
export const storedScenes: readonly Scene[] = [
  storedScene('Responses, streamed and stored', { stream: true, store: true }, 10),
  storedScene('Responses, whole and stored', { store: true }, 6),
  { kind: 'Responses, come back to', weight: 5, play: comeBack },
  { kind: 'Responses in the background', weight: 5, play: inBackground },
  { kind: 'conversations', weight: 4, play: converse },
]

/** Maximum duration of a background response on a loaded machine. */
const backgroundMs = 45_000
const terminal = new Set(['completed', 'failed', 'incomplete', 'cancelled'])

function modelRequest(client: SoakClient, plan: SoakPlan, fields: JsonObject) {
  return question('responses', plan, { model: pick(models, client.random), ...fields })
}

function storedScene(kind: string, fields: JsonObject, weight: number): Scene {
  return {
    kind,
    weight,
    async play(client) {
      const plan = drawPlan(client.random)
      const modelResponse = await requestModel(
        client,
        'responses',
        modelRequest(client, plan, fields),
      )
      const outcome = classifyOutcome(plan, modelResponse)
      if (modelResponse.id !== null) await retrieve(client, plan, modelResponse)
      return outcome
    },
  }
}

/** The stored response equals the returned one until it is deleted. */
async function retrieve(
  client: SoakClient,
  plan: SoakPlan,
  modelResponse: ModelResponse,
): Promise<void> {
  const path = `/v1/responses/${modelResponse.id}`
  const kept = readResponse(await client.askJson(path))
  classifyOutcome(plan, kept)
  if (kept.text !== modelResponse.text)
    throw new Error(`kept "${kept.text}", returned "${modelResponse.text}"`)
  await client.askJson(path, { method: 'DELETE' })
  await client.askJson(path, { status: 404 })
}

/** Disconnects in the middle and resumes. */
async function comeBack(client: SoakClient): Promise<Outcome> {
  const plan = {
    ...drawGoodPlan(client.random),
    plan: plainPlan({ tokens: 60, tokensPerSecond: 60 }),
  }
  const { path, json } = modelRequest(client, plan, { stream: true, store: true })
  const before = eventsOf(await readFor(100 + below(700, client.random), client, path, json))
  const last = before.at(-1)
  if (last === undefined) return 'left'
  const response = Object(before[0]?.['response'])
  const own = `/v1/responses/${response.id}`
  const rest = await client.ask(`${own}?stream=true&starting_after=${last['sequence_number']}`)
  const text = [...before, ...eventsOf(await rest.text())]
    .filter(({ type }) => type === 'response.output_text.delta')
    .map(({ delta }) => String(delta))
    .join('')
  if (!rest.ok) throw new Error(`the stream cannot be come back to: ${rest.status}`)
  if (!matches(plan, text, 'whole')) throw new Error(`put together: ${text.slice(0, 100)}`)
  await client.askJson(own, { method: 'DELETE' })
  return 'whole'
}

/** Complete frames received within a time, then disconnects. */
async function readFor(
  forMs: number,
  { ask }: SoakClient,
  path: string,
  json: JsonObject,
): Promise<string> {
  const { signal, hasLeft, close } = leaveAfter(forMs)
  const decoder = new TextDecoder()
  let text = ''
  try {
    const modelResponse = await ask(path, { json, signal })
    for await (const piece of modelResponse.body ?? [])
      text += decoder.decode(piece, { stream: true })
  } catch (error) {
    if (!hasLeft(error)) throw error
  } finally {
    close()
  }
  return text.slice(0, text.lastIndexOf('\n\n') + 2)
}

async function inBackground(client: SoakClient): Promise<Outcome> {
  const plan = drawPlan(client.random)
  const { path, json } = modelRequest(client, plan, { background: true, store: true })
  const { id } = await client.askJson(path, { json })
  const own = `/v1/responses/${id}`
  const isCancelled = client.random() < 0.2
  if (isCancelled) {
    await Bun.sleep(below(400, client.random))
    await client.askJson(`${own}/cancel`, { method: 'POST' })
  }
  let response: JsonObject = {}
  await until('a background response ends', backgroundMs, async () => {
    response = await client.askJson(own)
    return terminal.has(String(response['status']))
  })
  await client.askJson(own, { method: 'DELETE' })
  return response['status'] === 'cancelled' && isCancelled
    ? 'left'
    : classifyOutcome(plan, readResponse(response))
}

/** Each turn is appended to the conversation. */
async function converse(client: SoakClient): Promise<Outcome> {
  const { id } = await client.askJson('/v1/conversations', { json: {} })
  const turns = 1 + below(3, client.random)
  for (let turn = 0; turn < turns; turn++) {
    const plan = drawGoodPlan(client.random)
    const stream = client.random() < 0.5
    classifyOutcome(
      plan,
      await requestModel(
        client,
        'responses',
        modelRequest(client, plan, { conversation: id, stream }),
      ),
    )
  }
  const { data } = await client.askJson(`/v1/conversations/${id}/items?limit=100`)
  const count = Array.isArray(data) ? data.length : 0
  if (count !== 2 * turns) throw new Error(`${count} items after ${turns} turns`)
  await client.askJson(`/v1/conversations/${id}`, { method: 'DELETE' })
  return 'whole'
}
