import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { S3Client } from 'bun'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { removeUnfinished, spool } from './spool.ts'
import type { Storage } from './storage.ts'

/** S3 takes at most 10,000 parts, so this bounds an object at 160 GB. */
const partBytes = 16 * 1024 * 1024
/** Parts that are under way at once; with the size of a part, the memory of an upload. */
const partsAtOnce = 2

export type S3Settings = Config['s3'] & { readonly bucket: string }

/**
 * Contents as objects of a bucket. An object's name is the hash of its bytes, which is known only at
 * their end, so a content is written to the disk first; what is not whole never reaches the bucket.
 */
export async function createS3Storage(options: {
  settings: S3Settings
  /** For what is on its way. */
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
    async put(source, limits) {
      const aside = join(folder, Bun.randomUUIDv7())
      const content = await spool(source, aside, limits)
      try {
        const object = objectOf(content.sha256)
        await asked(() =>
          object.write(Bun.file(aside), { partSize: partBytes, queueSize: partsAtOnce }),
        )
      } finally {
        await rm(aside, { force: true })
      }
      return content
    },
    async read(sha256, range) {
      const object = objectOf(sha256)
      if (!(await asked(() => object.exists()))) {
        throw new AppError('not_found', 'The content of this file is gone.')
      }
      return (range === undefined ? object : object.slice(range.start, range.end)).stream()
    },
    has: (sha256) => asked(() => objectOf(sha256).exists()),
    async remove(sha256) {
      await asked(() => objectOf(sha256).delete())
    },
    async ping() {
      await asked(() => client.list({ maxKeys: 1 }))
    },
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

/** The errors of the client name buckets and addresses, which are nobody's business. */
async function asked<T>(question: () => Promise<T>): Promise<T> {
  try {
    return await question()
  } catch (cause) {
    throw new AppError('service_unavailable', 'The storage of files does not answer.', {
      retryAfterS: 1,
      cause,
    })
  }
}
