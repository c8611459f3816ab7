import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import type { Gateway, GatewayOptions } from '#test/support/gateway.ts'
import type { KnownIds } from './endpoint-requests.ts'

/** What the resources of tenants need: webhooks have an address here, where nothing listens. */
export const tenantOptions: GatewayOptions = { webhooks: { privateHosts: ['127.0.0.1'] } }

/** In every resource of the other user. */
export const canary = 'canary-7f3a91'

/** Creates every kind of resource for a user; returns the ids by the resource in their paths. */
export async function fillTenant(
  gateway: Gateway,
  bearer: string,
  word: string,
): Promise<Record<string, string>> {
  const send = async (operation: string, body?: JsonObject | string): Promise<JsonObject> => {
    const [method = '', path = ''] = operation.split(' ')
    const isText = typeof body === 'string'
    const response = await fetch(gateway.url + path, {
      method,
      headers: {
        authorization: `Bearer ${bearer}`,
        'content-type': isText ? 'text/plain' : 'application/json',
        'x-sluice-csrf': '1',
      },
      ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${operation}: ${text}`)
    return asRecord(parseJson(text))
  }
  const idOf = async (operation: string, body: JsonObject | string) =>
    String((await send(operation, body))['id'])
  const file = await idOf(`POST /v1/files?name=${word}.txt&purpose=batch`, `The word is ${word}.`)
  const collection = await idOf('POST /v1/collections', { name: word })
  await send(`POST /v1/collections/${collection}/files`, { file_id: file })
  await send('POST /v1/session', { token: bearer })
  const [session] = Object((await send('GET /v1/sessions'))['data'])
  return {
    sessions: String(asRecord(session)['id']),
    // Its file is none of requests, so it fails at once.
    batches: await idOf('POST /v1/batches', {
      input_file_id: file,
      endpoint: '/v1/responses',
      completion_window: '24h',
    }),
    message_batches: await idOf('POST /compat/v1/messages/batches', {
      requests: [
        {
          custom_id: word,
          params: {
            model: 'demo-fast',
            max_tokens: 9,
            messages: [{ role: 'user', content: word }],
          },
        },
      ],
    }),
    webhook_endpoints: await idOf('POST /v1/webhook_endpoints', {
      name: word,
      url: `https://127.0.0.1:1/${word}`,
      event_types: ['response.cancelled'],
    }),
    files: file,
    collections: collection,
    vector_stores: collection,
    folders: await idOf('POST /v1/folders', { name: word }),
    agents: await idOf('POST /v1/agents', { name: word, model: 'demo-fast', instructions: word }),
    responses: await idOf('POST /v1/responses', { model: 'demo-fast', input: word, store: true }),
    conversations: await idOf('POST /v1/conversations', {
      metadata: { word },
      items: [{ type: 'message', role: 'user', content: word }],
    }),
    'api-keys': await idOf('POST /v1/api-keys', { name: word }),
    uploads: await idOf('POST /v1/uploads', {
      filename: `${word}.txt`,
      bytes: 9,
      mime_type: 'text/plain',
      purpose: 'user_data',
    }),
  }
}

export function mergeIds(tenants: readonly Record<string, string>[]): KnownIds {
  const names = new Set(tenants.flatMap((ids) => Object.keys(ids)))
  return Object.fromEntries(
    [...names].map((name) => [name, tenants.flatMap((ids) => ids[name] ?? [])]),
  )
}
