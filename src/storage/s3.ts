import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { S3Client } from 'bun'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { withTimeLimit } from '#lib/time-limit.ts'
import { contentNotFound } from './disk.ts'
import { removeUnfinished, spool } from './spool.ts'
import type { Storage } from './storage.ts'

/** With the maximum of 10,000 parts, objects have up to 160 GB. */
const partBytes = 16 * 1024 * 1024
/** Concurrent parts; times the part size, the memory of an upload. */
const concurrentParts = 2

export type S3Settings = Config['s3'] & { readonly bucket: string }

/**
 * Stores contents in a bucket. The key is the hash of the content, so it is written to disk first;
 * incomplete uploads never reach the bucket.
 */
export async function createS3Storage(options: {
  settings: S3Settings
  /** For unfinished uploads. */
  folder: string
  now: () => Date
}): Promise<Storage> {
  const { settings, folder } = options
  const { requestMs } = settings
  const client = new S3Client(clientOptions(settings))
  await mkdir(folder, { recursive: true })
  await removeUnfinished(folder, options.now())
  const request = <T>(work: () => Promise<T>, requests = 1) =>
    withStorageErrors(() => withTimeLimit(work(), requestMs * requests, noResponse))
  const objectOf = (sha256: string) =>
    client.file(`${settings.prefix}${sha256.slice(0, 2)}/${sha256}`)

  return {
    async put(source, { bytesMax, claim }) {
      const path = join(folder, Bun.randomUUIDv7())
      const content = await spool(source, path, { bytesMax })
      try {
        await claim?.(content)
        const object = objectOf(content.sha256)
        // The parts, and the requests that begin and complete the upload.
        const requests = Math.ceil(content.bytes / partBytes) + 2
        await request(
          () => object.write(Bun.file(path), { partSize: partBytes, queueSize: concurrentParts }),
          requests,
        )
      } finally {
        await rm(path, { force: true })
      }
      return content
    },
    async read(sha256, range) {
      const object = objectOf(sha256)
      if (!(await request(() => object.exists()))) throw contentNotFound()
      const part = range === undefined ? object : object.slice(range.start, range.end)
      return withoutStalls(part.stream(), requestMs)
    },
    has: (sha256) => request(() => objectOf(sha256).exists()),
    async remove(sha256) {
      await request(() => objectOf(sha256).delete())
    },
    async ping() {
      await request(() => client.list({ maxKeys: 1 }))
    },
    removeUnfinished: (now) => removeUnfinished(folder, now),
  }
}

function clientOptions({ endpoint, bucket, region, accessKeyId, secretAccessKey }: S3Settings) {
  return {
    bucket,
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(accessKeyId === undefined ? {} : { accessKeyId }),
    ...(secretAccessKey === undefined ? {} : { secretAccessKey }),
  }
}

function noResponse(): Error {
  return new Error('the storage server did not respond in time')
}

/** Fails when the server sends nothing for too long; a reader that pauses asks for nothing. */
function withoutStalls(
  source: ReadableStream<Uint8Array>,
  stallMs: number,
): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await withTimeLimit(reader.read(), stallMs, noResponse)
        if (done) controller.close()
        else controller.enqueue(value)
      } catch (error) {
        void reader.cancel(error).catch(() => {})
        throw error
      }
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

/** Hides errors of the client, which contain buckets and addresses. */
async function withStorageErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new AppError('service_unavailable', 'The file storage is unavailable.', {
      retryAfterS: 1,
      cause,
    })
  }
}
