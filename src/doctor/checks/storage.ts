import { existsSync } from 'node:fs'
import { fail, ok, skip } from '#doctor/finding.ts'
import { placeOf, reasonOf } from '#doctor/words.ts'
import type { CheckGroup, World } from '#doctor/world.ts'
import { openStorage } from '#storage/module.ts'

const check = 'storage'

/** Puts, reads and removes a small content that nobody else has. */
export const storage: CheckGroup = {
  name: check,
  limitMs: () => 20_000,
  async check(world) {
    const { config, now } = world
    if (!existsSync(config.data)) return [skip(check, 'there is no data folder yet')]
    const place = placeName(world)
    try {
      await tryStorage(await openStorage(config, now))
      return [ok(check, `${place} takes, gives and removes contents`)]
    } catch (error) {
      return [fail(check, `${place}: ${reasonOf(error)}`, adviceFor(world))]
    }
  },
}

async function tryStorage(opened: Awaited<ReturnType<typeof openStorage>>): Promise<void> {
  const bytes = crypto.getRandomValues(new Uint8Array(64))
  const source = (async function* () {
    yield bytes
  })()
  const { sha256 } = await opened.put(source, { bytesMax: bytes.length })
  try {
    const read = await new Response(await opened.read(sha256)).bytes()
    if (!Bun.deepEquals(read, bytes)) throw new Error('what was put there comes back changed')
  } finally {
    await opened.remove(sha256)
  }
  if (await opened.has(sha256)) throw new Error('what was removed is still there')
}

function placeName({ config: { s3 } }: World): string {
  if (s3.bucket === undefined) return 'the data folder'
  const server = s3.endpoint === undefined ? `S3 in ${s3.region}` : placeOf(s3.endpoint)
  return `the bucket "${s3.bucket}" at ${server}`
}

function adviceFor({ config: { s3 } }: World): string {
  return s3.bucket === undefined
    ? 'Let the user who runs the server write in the data folder.'
    : 'Check S3_ENDPOINT, S3_BUCKET and its region, and that S3_ACCESS_KEY_ID may put, get and delete objects there.'
}
