import { existsSync } from 'node:fs'
import type { CheckGroup, CheckInputs } from '#doctor/check.ts'
import { fail, ok, skip } from '#doctor/finding.ts'
import { placeOf, reasonOf } from '#doctor/format.ts'
import { openStorage } from './storage.ts'

const check = 'storage'

/** Writes, reads and deletes a small random object. */
export const storage: CheckGroup = {
  name: check,
  limitMs: () => 20_000,
  async check(inputs) {
    const { config, now } = inputs
    if (!existsSync(config.data)) return [skip(check, 'there is no data folder yet')]
    const place = placeName(inputs)
    try {
      await tryStorage(await openStorage(config, now))
      return [ok(check, `${place} accepts writes, reads and deletes`)]
    } catch (error) {
      return [fail(check, `${place}: ${reasonOf(error)}`, adviceFor(inputs))]
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
    if (!Bun.deepEquals(read, bytes)) throw new Error('the stored object was changed')
  } finally {
    await opened.remove(sha256)
  }
  if (await opened.has(sha256)) throw new Error('the deleted object still exists')
}

function placeName({ config: { s3 } }: CheckInputs): string {
  if (s3.bucket === undefined) return 'the data folder'
  const server = s3.endpoint === undefined ? `S3 in ${s3.region}` : placeOf(s3.endpoint)
  return `the bucket "${s3.bucket}" at ${server}`
}

function adviceFor({ config: { s3 } }: CheckInputs): string {
  return s3.bucket === undefined
    ? "Give the server's user write permission for the data folder."
    : 'Check S3_ENDPOINT, S3_BUCKET and its region, and that S3_ACCESS_KEY_ID may put, get and delete objects there.'
}
