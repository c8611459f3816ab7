import { join } from 'node:path'
import type { Config } from '#config/schema.ts'
import { createDiskStorage } from './disk.ts'
import { createS3Storage } from './s3.ts'
import type { Storage } from './storage.ts'

/** The configured bucket, or the data folder. */
export function openStorage(
  { data, s3 }: Pick<Config, 'data' | 's3'>,
  now: () => Date,
): Promise<Storage> {
  const { bucket } = s3
  return bucket === undefined
    ? createDiskStorage({ folder: join(data, 'files'), now })
    : createS3Storage({ settings: { ...s3, bucket }, folder: join(data, 'uploads'), now })
}
