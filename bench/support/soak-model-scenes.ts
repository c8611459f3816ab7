import type { JsonObject } from '#lib/json.ts'
import { openSocket } from '#test/support/socket-client.ts'
import { leaveAfter, type Scene, type SoakClient } from './soak-client.ts'
import type { Outcome } from './soak-job.ts'
import { below, drawGoodPlan, drawPlan, pick, promptOf } from './soak-plan.ts'
import {
  classifyOutcome,
  type ModelResponse,
  models,
  question,
  requestModel,
  type Surface,
} from './soak-responses.ts'
import { outputTextOf } from './stream-events.ts'

/** Scenes with unstored responses, over HTTP and WebSockets, some with early disconnects. */
export const modelScenes: readonly Scene[] = [
  turn('Responses, streamed', 'responses', { stream: true, store: false }, 20),
  turn('Responses, whole', 'responses', { store: false }, 10),
  turn('Messages, streamed', 'messages', { stream: true }, 15),
  turn('Messages, whole', 'messages', {}, 8),
  disconnectScene('Responses, client leaves', 'responses', { stream: true, store: false }, 6),
  disconnectScene('Messages, client leaves', 'messages', { stream: true }, 4),
  { kind: 'Responses over a WebSocket', weight: 6, play: talk },
  { kind: 'tokens of a message counted', weight: 3, play: countTokens },
  { kind: 'lists of models', weight: 3, play: listModels },
]

function turn(kind: string, surface: Surface, fields: JsonObject, weight: number): Scene {
  return {
    kind,
    weight,
    async play(client) {
      const plan = drawPlan(client.random)
      const model = pick(models, client.random)
      return classifyOutcome(
        plan,
        await requestModel(client, surface, question(surface, plan, { model, ...fields })),
      )
    },
  }
}

/** Reads part of the response, or nothing, and disconnects. */
function disconnectScene(
  kind: string,
  surface: Surface,
  fields: JsonObject,
  weight: number,
): Scene {
  return {
    kind,
    weight,
    async play(client) {
      const { random } = client
      const plan = drawPlan(random)
      const asked = question(surface, plan, { model: pick(models, random), ...fields })
      const { signal, hasLeft, close } = leaveAfter(below(600, random))
      try {
        // It may complete before the client disconnects.
        return classifyOutcome(plan, await requestModel(client, surface, { ...asked, signal }))
      } catch (error) {
        if (hasLeft(error)) return 'left'
        throw error
      } finally {
        close()
      }
    },
  }
}

/** Several turns on one connection; a failed turn leaves the connection usable. */
async function talk({ job, bearer, random }: SoakClient): Promise<Outcome> {
  const socket = await openSocket(job.port, { headers: { authorization: `Bearer ${bearer}` } })
  try {
    let outcome: 'whole' | 'failed' = 'whole'
    for (let turns = 1 + below(3, random); turns > 0; turns--) {
      const plan = drawPlan(random)
      const model = pick(models, random)
      const body = { model, input: promptOf(plan), store: false }
      const { response, failure, events } = await socket.turn(body)
      const isWhole = response?.['status'] === 'completed'
      const modelResponse: ModelResponse = {
        end: isWhole ? 'whole' : 'failed',
        text: String(outputTextOf(response) ?? ''),
        id: null,
        failure: JSON.stringify(failure ?? response?.['error'] ?? events.at(-1) ?? null),
      }
      if (classifyOutcome(plan, modelResponse) === 'failed') outcome = 'failed'
    }
    return outcome
  } finally {
    close(socket)
  }
}

function close({ socket, sendFrame }: Awaited<ReturnType<typeof openSocket>>): void {
  const [closeOpcode, normal] = [8, Buffer.from([0x03, 0xe8])]
  sendFrame(closeOpcode, normal)
  socket.end()
}

async function countTokens({ askJson, random }: SoakClient): Promise<Outcome> {
  const { path, json } = question('messages', drawGoodPlan(random), { model: pick(models, random) })
  const counted = await askJson(`${path}/count_tokens`, { json })
  if (Number(counted['input_tokens']) > 0) return 'whole'
  throw new Error(`no count of tokens: ${JSON.stringify(counted)}`)
}

async function listModels({ askJson }: SoakClient): Promise<Outcome> {
  for (const path of ['/v1/models', '/compat/v1/models']) {
    const list = JSON.stringify(await askJson(path))
    if (!models.every((model) => list.includes(model))) throw new Error(`${path}: ${list}`)
  }
  return 'whole'
}
