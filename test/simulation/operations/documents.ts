import { asRecord } from '#lib/json.ts'
import { type Client, canaryFor, Refused } from '../client.ts'
import { ViolationError } from '../record.ts'
import type { KnownCollection } from '../world.ts'
import type { OperationKind, Scene } from './operation.ts'

/** Files, shares, uploads in parts, collections and searches. */
export function documents(seed: number): readonly OperationKind[] {
  return [
    { kind: 'file', weight: 6, play: uploadFile },
    { kind: 'shared file', weight: 3, play: (scene) => shareFile(scene, seed) },
    { kind: 'download', weight: 4, play: download },
    { kind: 'deleted file', weight: 2, play: deleteFile },
    { kind: 'upload in parts', weight: 2, play: uploadInParts },
    { kind: 'indexed file', weight: 3, play: indexFile },
    { kind: 'search', weight: 4, play: search },
    { kind: 'deleted collection', weight: 0.5, play: deleteCollection },
  ]
}

const fileBytesMax = 120_000
const pollMs = 250
/** Afterwards the checks at the end look again. */
const pollsMax = 40
const topics = ['glacier', 'harvest', 'lantern', 'orchard', 'sextant', 'volcano'] as const

/** A text that begins with the canary, so that no two tenants have equal contents. */
function textOf(client: Client, canary: string, charsMax: number): Buffer {
  const lines = [`${canary} ${client.name} ${client.below(1_000_000_000)}`]
  const chars = client.below(charsMax)
  for (let size = 0; size < chars; size += 60) lines.push(`line ${lines.length} ${'x'.repeat(45)}`)
  return Buffer.from(lines.join('\n'))
}

async function upload(scene: Scene, bytes: Buffer): Promise<string> {
  const { client, world } = scene
  const name = `file-${client.index}-${client.below(1_000_000_000)}.txt`
  const { id } = await client.json(`/v1/files?name=${name}`, { body: new Uint8Array(bytes) })
  world.files.set(String(id), { tenant: client.index, bytes, readers: [], state: 'present' })
  client.facts.push(String(id))
  return String(id)
}

async function uploadFile(scene: Scene): Promise<void> {
  const { client } = scene
  const bytes = textOf(client, client.canary, fileBytesMax)
  await requireContent(client, await upload(scene, bytes), bytes)
}

export async function requireContent(client: Client, id: string, bytes: Buffer): Promise<void> {
  const path = `/v1/files/${id}/content`
  const reply = await client.send(path)
  if (reply.status === 404) throw new ViolationError('an acknowledged file is there', `${id}: 404`)
  if (reply.status !== 200) throw new Refused(path, reply)
  if (reply.bytes.equals(bytes)) return
  const detail = `${id}: ${reply.bytes.length} bytes instead of ${bytes.length}`
  throw new ViolationError('a file has the bytes that were uploaded', detail)
}

/** The canary of a shared file names both tenants. */
async function shareFile(scene: Scene, seed: number): Promise<void> {
  const { client, world, peers } = scene
  const others = peers.filter(({ index }) => index !== client.index)
  const peer = others[client.below(others.length)]
  if (peer === undefined) return
  const canary = canaryFor(seed, client.index, peer.index)
  const id = await upload(scene, textOf(client, canary, 5_000))
  const known = world.files.get(id)
  await client.json(`/v1/files/${id}/shares`, {
    json: { principal: { type: 'user', id: peer.userId }, role: 'viewer' },
  })
  known?.readers.push(peer.index)
}

/** Of an own file, or of one that was shared with the client; others are not found. */
async function download({ client, world }: Scene): Promise<void> {
  const files = [...world.files].filter(([, { state }]) => state === 'present')
  const [id, file] = files[client.below(files.length)] ?? []
  if (id === undefined || file === undefined) return
  const isReader = file.tenant === client.index || file.readers.includes(client.index)
  if (isReader) return requireContent(client, id, file.bytes)
  const wasShared = file.readers.length > 0
  const { status } = await client.send(`/v1/files/${id}/content`)
  // It may be shared while it is requested.
  if (status === 200 && !wasShared && file.readers.length === 0) {
    throw new ViolationError('files of others are not found', `${client.name} reads ${id}`)
  }
}

async function deleteFile({ client, world }: Scene): Promise<void> {
  const own = [...world.files].filter(
    ([, file]) => file.state === 'present' && file.tenant === client.index,
  )
  const [id, file] = own[client.below(own.length)] ?? []
  if (id === undefined || file === undefined) return
  const collections = [...world.collections.values()].filter(({ words }) => words.has(id))
  file.state = 'unknown'
  for (const { words } of collections) words.delete(id)
  await client.json(`/v1/files/${id}`, { method: 'DELETE' })
  file.state = 'deleted'
  const { status } = await client.send(`/v1/files/${id}/content`)
  if (status === 200) throw new ViolationError('a deleted file is gone', id)
}

async function uploadInParts(scene: Scene): Promise<void> {
  const { client, world } = scene
  const bytes = textOf(client, client.canary, fileBytesMax)
  const created = await client.json('/v1/uploads', {
    json: {
      filename: 'parts.txt',
      purpose: 'user_data',
      bytes: bytes.length,
      mime_type: 'text/plain',
    },
  })
  const id = String(created['id'])
  const known = { tenant: client.index, state: 'pending' as 'pending' | 'unknown' | 'ended' }
  world.uploads.set(id, known)
  const middle = Math.floor(bytes.length / 2)
  const partIds: string[] = []
  for (const part of [bytes.subarray(0, middle), bytes.subarray(middle)]) {
    const form = new FormData()
    form.set('data', new Blob([new Uint8Array(part)]))
    const { id: partId } = await client.json(`/v1/uploads/${id}/parts`, { body: form })
    partIds.push(String(partId))
  }
  known.state = 'unknown'
  if (client.random() < 0.3) {
    await client.json(`/v1/uploads/${id}/cancel`, { method: 'POST' })
    known.state = 'ended'
    return
  }
  const completed = await client.json(`/v1/uploads/${id}/complete`, { json: { part_ids: partIds } })
  known.state = 'ended'
  const fileId = String(asRecord(completed['file'])['id'])
  world.files.set(fileId, { tenant: client.index, bytes, readers: [], state: 'present' })
  await requireContent(client, fileId, bytes)
}

function ownCollections({ client, world }: Scene): [string, KnownCollection][] {
  return [...world.collections].filter(
    ([, { tenant, state }]) => tenant === client.index && state === 'present',
  )
}

/** Adds a file with a word of its own, and finds it once it is indexed. */
async function indexFile(scene: Scene): Promise<void> {
  const { client, world } = scene
  let [id, collection] = ownCollections(scene)[0] ?? []
  if (id === undefined || collection === undefined) {
    const name = `collection-${client.index}-${client.below(1_000_000_000)}`
    id = String((await client.json('/v1/collections', { json: { name } }))['id'])
    collection = { tenant: client.index, name, words: new Map(), state: 'present' }
    world.collections.set(id, collection)
  }
  const word = `zyx${client.index}q${client.below(1_000_000_000)}`
  const topic = topics[client.below(topics.length)]
  const bytes = Buffer.from(`${client.canary} says ${word} about the ${topic}.`)
  const fileId = await upload(scene, bytes)
  await client.json(`/v1/vector_stores/${id}/files`, { json: { file_id: fileId } })
  if (collection.state === 'present') collection.words.set(fileId, word)
  for (let polls = 0; polls < pollsMax; polls++) {
    const { status, last_error } = await client.json(`/v1/vector_stores/${id}/files/${fileId}`)
    if (status === 'failed') {
      throw new ViolationError('a file is indexed', `${fileId}: ${JSON.stringify(last_error)}`)
    }
    if (status === 'completed') return requireFound(client, collection.name, word)
    await Bun.sleep(pollMs)
  }
}

export async function requireFound(client: Client, name: string, word: string): Promise<void> {
  const found = await client.json(`/v1/collections/${name}/search`, { json: { query: word } })
  if (JSON.stringify(found).includes(word)) return
  throw new ViolationError('an indexed file is found', `${word} in ${name}`)
}

/** Finds texts of this tenant only: the canaries of each reply are checked. */
async function search(scene: Scene): Promise<void> {
  const { client } = scene
  const [, collection] = ownCollections(scene)[0] ?? []
  if (collection === undefined) return
  const query = `What is said about the ${topics[client.below(topics.length)]}?`
  await client.json(`/v1/collections/${collection.name}/search`, { json: { query } })
}

async function deleteCollection(scene: Scene): Promise<void> {
  const [id, collection] = ownCollections(scene)[0] ?? []
  if (id === undefined || collection === undefined) return
  collection.state = 'unknown'
  await scene.client.json(`/v1/collections/${id}`, { method: 'DELETE' })
  collection.state = 'deleted'
}
