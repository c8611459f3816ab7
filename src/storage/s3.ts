import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { S3Client } from 'bun'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
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
  const client = new S3Client(clientOptions(settings))
  await mkdir(folder, { recursive: true })
  await removeUnfinished(folder, options.now())
  const objectOf = (sha256: string) =>
    client.file(`${settings.prefix}${sha256.slice(0, 2)}/${sha256}`)

  return {
    async put(source, { bytesMax, claim }) {
      const path = join(folder, Bun.randomUUIDv7())
      const content = await spool(source, path, { bytesMax })
      try {
        await claim?.(content)
        const object = objectOf(content.sha256)
        await withStorageErrors(() =>
          object.write(Bun.file(path), { partSize: partBytes, queueSize: concurrentParts }),
        )
      } finally {
        await rm(path, { force: true })
      }
      return content
    },
    async read(sha256, range) {
      const object = objectOf(sha256)
      if (!(await withStorageErrors(() => object.exists()))) {
        throw contentNotFound()
      }
      return (range === undefined ? object : object.slice(range.start, range.end)).stream()
    },
    has: (sha256) => withStorageErrors(() => objectOf(sha256).exists()),
    async remove(sha256) {
      await withStorageErrors(() => objectOf(sha256).delete())
    },
    async ping() {
      await withStorageErrors(() => client.list({ maxKeys: 1 }))
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
