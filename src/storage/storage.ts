import { join } from 'node:path'
import type { Config } from '#config/schema.ts'
import { createDiskStorage } from './disk.ts'
import { createS3Storage } from './s3.ts'

/** Stores contents by the hash of their bytes, so that equal contents are stored once. */
export type Storage = {
  /**
   * Streams a content with backpressure and bounded memory. Resolves when it is durable; a failure
   * leaves nothing behind.
   *
   * Throws `request_too_large` above `bytesMax`, `insufficient_storage`, and errors of the source and of
   * `claim`.
   */
  put(source: AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredContent>
  /** Bytes from `start` to before `end`; throws `not_found`. */
  read(sha256: string, range?: { start: number; end: number }): Promise<ReadableStream<Uint8Array>>
  has(sha256: string): Promise<boolean>
  /** Succeeds for absent contents. */
  remove(sha256: string): Promise<void>
  /** Rejects if the storage cannot be used. */
  ping(): Promise<void>
  /** Removes what killed processes left of unfinished contents, after a day. */
  removeUnfinished(now: Date): Promise<void>
}

type PutOptions = {
  readonly bytesMax: number
  /**
   * Records the complete content before it is stored, so that a process that is killed here leaves
   * nothing that the sweep does not know.
   */
  readonly claim?: (content: StoredContent) => Promise<void>
}

export type StoredContent = {
  /** In hex. */
  readonly sha256: string
  readonly bytes: number
  /** The first 4,100 bytes at most, for format detection. */
  readonly head: Uint8Array
}

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
