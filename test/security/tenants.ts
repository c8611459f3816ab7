import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import type { Gateway } from '#test/support/gateway.ts'
import type { KnownIds } from './endpoint-requests.ts'

/** In every resource of the other user. */
export const canary = 'canary-7f3a91'

/** Creates every kind of resource for a user; returns the ids by the resource in their paths. */
export async function fillTenant(
  gateway: Gateway,
  bearer: string,
  word: string,
): Promise<Record<string, string>> {
  const send = async (operation: string, body: JsonObject | string): Promise<JsonObject> => {
    const [method = '', path = ''] = operation.split(' ')
    const isText = typeof body === 'string'
    const response = await fetch(gateway.url + path, {
      method,
      headers: {
        authorization: `Bearer ${bearer}`,
        'content-type': isText ? 'text/plain' : 'application/json',
      },
      body: isText ? body : JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${operation}: ${text}`)
    return asRecord(parseJson(text))
  }
  const idOf = async (operation: string, body: JsonObject | string) =>
    String((await send(operation, body))['id'])
  const file = await idOf(`POST /v1/files?name=${word}.txt`, `The word is ${word}.`)
  const collection = await idOf('POST /v1/collections', { name: word })
  await send(`POST /v1/collections/${collection}/files`, { file_id: file })
  return {
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
