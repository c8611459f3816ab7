import { asRecord } from '#lib/json.ts'
import { leaveAfter, type Scene, type SoakClient, until } from './soak-client.ts'
import type { Outcome } from './soak-job.ts'
import { below } from './soak-plan.ts'

/** Scenes with files, keys and settings. */
export const platformScenes: readonly Scene[] = [
  { kind: 'files up and down', weight: 6, play: upAndDown },
  { kind: 'uploads broken off', weight: 2, play: breakUpload },
  { kind: 'keys made and revoked', weight: 3, play: useKey },
  { kind: 'settings changed', weight: 2, play: changeSettings },
  { kind: 'translations changed', weight: 2, play: translate },
]

const fileBytesMax = 500_000
/** Time after which every worker refuses a revoked key. */
const revokedWithinMs = 1_000

function bytesOf(random: () => number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(1 + below(fileBytesMax, random))
  for (let at = 0; at < bytes.length; at++) bytes[at] = (at * 31 + bytes.length) & 0xff
  return bytes
}

async function upAndDown({ ask, askJson, random }: SoakClient): Promise<Outcome> {
  const bytes = bytesOf(random)
  const { id } = await askJson(`/v1/files?name=soak-${crypto.randomUUID()}.bin`, { body: bytes })
  const path = `/v1/files/${id}/content`
  const all = new Uint8Array(await (await ask(path)).arrayBuffer())
  if (!Buffer.from(all).equals(bytes)) throw new Error('another content came back')
  const from = below(bytes.length, random)
  const part = await ask(path, { headers: { range: `bytes=${from}-` } })
  const rest = Buffer.from(await part.arrayBuffer())
  if (part.status !== 206 || !rest.equals(bytes.subarray(from))) {
    throw new Error(`status ${part.status} and ${rest.length} bytes for a part of a file`)
  }
  await askJson(`/v1/files/${id}`, { method: 'DELETE' })
  await askJson(path, { status: 404 })
  return 'whole'
}

/** Disconnects during an upload. */
async function breakUpload({ ask, random }: SoakClient): Promise<Outcome> {
  const { signal, hasLeft, close } = leaveAfter(20 + below(80, random))
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await Bun.sleep(10)
      if (!signal.aborted) controller.enqueue(new Uint8Array(30_000))
    },
  })
  try {
    await ask('/v1/files?name=broken', { method: 'POST', body, signal })
  } catch (error) {
    if (hasLeft(error)) return 'left'
    throw error
  } finally {
    close()
  }
  throw new Error('an incomplete upload was answered')
}

async function useKey({ ask, askJson, job }: SoakClient): Promise<Outcome> {
  const { id, key } = await askJson('/v1/api-keys', { json: { name: 'soak' } })
  const headers = { 'x-api-key': String(key) }
  await askJson('/v1/models', { headers })
  await askJson(`/v1/api-keys/${id}`, { method: 'DELETE' })
  const endMs = performance.now() + revokedWithinMs
  const isRefused = async () => {
    // Connections may reach different workers.
    const httpResponse = await ask('/v1/models', { headers: { ...headers, connection: 'close' } })
    await httpResponse.text()
    return httpResponse.status === 401
  }
  while (performance.now() < endMs && !(await isRefused())) await Bun.sleep(20)
  await Bun.sleep(Math.max(0, endMs - performance.now()))
  for (let tries = 0; tries < 2 * job.workers; tries++) {
    if (!(await isRefused())) throw new Error('a revoked key still works')
  }
  return 'whole'
}

/** Concurrent changes by another client are refused with 412. */
async function changeSettings({ ask, job, random }: SoakClient): Promise<Outcome> {
  const { adminBearer: bearer } = job
  const known = await ask('/v1/config', { bearer })
  await known.text()
  const wanted = 1 + below(50, random)
  const headers = { 'if-match': known.headers.get('etag') ?? '' }
  const changed = await ask('/v1/config', {
    method: 'PATCH',
    bearer,
    headers,
    json: { retrieval_k: wanted },
  })
  const values = asRecord(await changed.json())
  if (changed.status === 412) return 'failed'
  if (changed.ok && values['retrieval_k'] === wanted) return 'whole'
  throw new Error(`status ${changed.status}: ${JSON.stringify(values)}`)
}

async function translate({ askJson, job, number, random }: SoakClient): Promise<Outcome> {
  const text = `words ${below(1_000_000, random)}`
  const key = `client${number}`
  await askJson('/v1/translations/sk?force=true', {
    method: 'PATCH',
    bearer: job.adminBearer,
    json: { soak: { [key]: text } },
  })
  await until('a translation is read by others', 5_000, async () => {
    const { sk } = await askJson('/v1/translations')
    return asRecord(asRecord(sk)['soak'])[key] === text
  })
  return 'whole'
}
