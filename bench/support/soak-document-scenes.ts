import { asRecord, type JsonObject } from '#lib/json.ts'
import { type Scene, type SoakClient, until } from './soak-client.ts'
import type { Outcome } from './soak-job.ts'
import { below } from './soak-plan.ts'

/** Scenes with documents and search. */
export const documentScenes: readonly Scene[] = [
  { kind: 'searches', weight: 8, play: search },
  { kind: 'documents indexed and found', weight: 0.5, play: indexAndFind },
]

const topics = ['glacier', 'harvest', 'lantern', 'orchard', 'sextant', 'volcano'] as const
/** Extraction runs in child processes with limited concurrency. */
const indexedWithinMs = 60_000

/** Creates the shared documents before the load; throws on failure. */
export async function prepareDocuments(client: SoakClient): Promise<void> {
  for (const topic of topics) {
    const { id } = await createCollection(client, collectionOf(topic))
    await index(client, String(id), topic, `All that is known about the ${topic}.`)
    await client.askJson(`/v1/collections/${id}/shares`, {
      json: { principal: { type: 'everyone' }, role: 'viewer' },
    })
  }
}

function collectionOf(topic: string): string {
  return `soak-${topic}`
}

function createCollection({ askJson }: SoakClient, name: string): Promise<JsonObject> {
  return askJson('/v1/collections', { json: { name, access_mode: 'collection' } })
}

async function index(client: SoakClient, collectionId: string, topic: string, text: string) {
  const body = new Uint8Array(Buffer.from(text))
  const { id } = await client.askJson(`/v1/files?name=${topic}-${crypto.randomUUID()}.txt`, {
    body,
  })
  const files = `/v1/vector_stores/${collectionId}/files`
  await client.askJson(files, { json: { file_id: id } })
  await until('a document is in its index', indexedWithinMs, async () => {
    const { status } = await client.askJson(`${files}/${id}`)
    if (status === 'failed' || status === 'cancelled') throw new Error(`a document ${status}`)
    return status === 'completed'
  })
  return String(id)
}

async function search(client: SoakClient): Promise<Outcome> {
  const topic = topics[below(topics.length, client.random)] ?? topics[0]
  const found = await find(client, collectionOf(topic), `What about the ${topic}?`)
  if (found.some((text) => text.includes(topic))) return 'whole'
  throw new Error(`nothing about the ${topic} is found`)
}

async function find({ askJson }: SoakClient, name: string, query: string): Promise<string[]> {
  const { data } = await askJson(`/v1/collections/${name}/search`, { json: { query } })
  return (Array.isArray(data) ? data : []).map((hit: unknown) =>
    JSON.stringify(asRecord(hit)['content']),
  )
}

/** Deleted documents are not found. */
async function indexAndFind(client: SoakClient): Promise<Outcome> {
  const name = `soak-${crypto.randomUUID().slice(0, 13)}`
  const word = `word${below(1_000_000, client.random)}`
  const { id } = await createCollection(client, name)
  const fileId = await index(client, String(id), 'own', `Nobody else says ${word} here.`)
  const before = await find(client, name, word)
  if (!before.some((text) => text.includes(word))) throw new Error(`${word} is not found`)
  await client.askJson(`/v1/files/${fileId}`, { method: 'DELETE' })
  const after = await find(client, name, word)
  if (after.length > 0) throw new Error('a deleted document is found')
  await client.askJson(`/v1/collections/${id}`, { method: 'DELETE' })
  return 'whole'
}
