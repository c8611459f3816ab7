import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import type { RequestOptions, SoakClient } from './soak-client.ts'
import type { Outcome } from './soak-job.ts'
import { matches, mustReturnError, promptOf, type SoakPlan } from './soak-plan.ts'
import { outputTextOf } from './stream-events.ts'

/** A model response as a client saw it. */
export type ModelResponse = {
  readonly end: 'whole' | 'failed'
  readonly text: string
  /** Id of the response or message, if received. */
  readonly id: string | null
  /** Error details, if it failed. */
  readonly failure: string
}

export type Surface = 'responses' | 'messages'

/** One model per upstream protocol. */
export const models = ['soak-chat', 'soak-responses', 'soak-messages'] as const

/** Request of each surface, without the prompt. */
export function question(
  surface: Surface,
  plan: SoakPlan,
  fields: JsonObject,
): { readonly path: string; readonly json: JsonObject } {
  const prompt = promptOf(plan)
  if (surface === 'responses') return { path: '/v1/responses', json: { input: prompt, ...fields } }
  const messages = [{ role: 'user', content: prompt }]
  return { path: '/compat/v1/messages', json: { max_tokens: 4_096, messages, ...fields } }
}

/** Sends a request and reads it to its end. */
export async function requestModel(
  client: SoakClient,
  surface: Surface,
  { path, ...how }: { readonly path: string } & Pick<RequestOptions, 'json' | 'signal'>,
): Promise<ModelResponse> {
  const modelResponse = await client.ask(path, how)
  const text = await modelResponse.text()
  const isStream = (modelResponse.headers.get('content-type') ?? '').startsWith('text/event-stream')
  if (!modelResponse.ok) return refusal(modelResponse.status, text)
  if (isStream) return surface === 'responses' ? readResponses(text) : readMessages(text)
  const body = asRecord(parseJson(text))
  return surface === 'responses' ? readResponse(body) : readMessage(body)
}

/** Throws if a response contradicts its plan; returns the outcome. */
export function classifyOutcome(plan: SoakPlan, modelResponse: ModelResponse): Outcome {
  const { end, text, failure } = modelResponse
  const due = mustReturnError(plan) ? 'failed' : 'whole'
  const { fault, tries } = plan
  if (end !== due) {
    throw new Error(`${end} in place of ${due}, after ${fault} (${tries} tries): ${failure}`)
  }
  if (!matches(plan, text, end === 'whole' ? 'whole' : 'beginning')) {
    throw new Error(`another text than was sent, after ${fault}: ${text.slice(0, 100)}`)
  }
  return end
}

function refusal(status: number, text: string): ModelResponse {
  const { error } = asRecord(parseJson(text))
  const { message, type } = asRecord(error)
  if (typeof message !== 'string' || typeof type !== 'string') {
    throw new Error(`status ${status} without a proper error: ${text.slice(0, 200)}`)
  }
  return { end: 'failed', text: '', id: null, failure: `${status} ${type}: ${message}` }
}

function readResponses(wire: string): ModelResponse {
  const events = eventsOf(wire)
  const last = events.findLast(({ type }) =>
    /^response\.(completed|failed|incomplete)$/.test(`${type}`),
  )
  const failure = events.find(({ type }) => type === 'error')
  const response = asRecord(last?.['response'])
  return {
    end: last?.['type'] === 'response.completed' ? 'whole' : 'failed',
    text: deltasOf(events, 'response.output_text.delta', (event) => event['delta']),
    id: typeof response['id'] === 'string' ? response['id'] : null,
    failure: JSON.stringify(failure ?? response['error'] ?? null),
  }
}

/** Validates a Response object, also when retrieved later. */
export function readResponse(response: JsonObject): ModelResponse {
  return {
    end: response['status'] === 'completed' ? 'whole' : 'failed',
    text: String(outputTextOf(response) ?? ''),
    id: typeof response['id'] === 'string' ? response['id'] : null,
    failure: JSON.stringify(response['error'] ?? null),
  }
}

function readMessages(wire: string): ModelResponse {
  const events = eventsOf(wire)
  const failure = events.find(({ type }) => type === 'error')
  const isWhole = failure === undefined && events.some(({ type }) => type === 'message_stop')
  return {
    end: isWhole ? 'whole' : 'failed',
    text: deltasOf(events, 'content_block_delta', (event) => asRecord(event['delta'])['text']),
    id: null,
    failure: JSON.stringify(failure ?? null),
  }
}

function readMessage({ content, stop_reason: reason }: JsonObject): ModelResponse {
  const parts = Array.isArray(content) ? content.filter(isRecord) : []
  const text = parts.map((part) => part['text']).join('')
  return { text, end: reason === 'end_turn' ? 'whole' : 'failed', id: null, failure: `${reason}` }
}

function deltasOf(
  events: readonly JsonObject[],
  type: string,
  read: (event: JsonObject) => unknown,
): string {
  return events
    .filter((event) => event['type'] === type)
    .map((event) => String(read(event)))
    .join('')
}

/** Interprets the events of a validated stream or of its beginning. */
export function eventsOf(wire: string): JsonObject[] {
  return [...wire.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => asRecord(parseJson(data)))
}
