/** Stores contents by the hash of their bytes, so that equal contents are stored once. */
export type Storage = {
  /**
   * Streams a content with backpressure and bounded memory. Resolves when it is durable; a failure
   * leaves nothing behind.
   *
   * Throws `request_too_large` above `bytesMax`, `insufficient_storage`, and errors of the source.
   */
  put(source: AsyncIterable<Uint8Array>, limits: { bytesMax: number }): Promise<StoredContent>
  /** Bytes from `start` to before `end`; throws `not_found`. */
  read(sha256: string, range?: { start: number; end: number }): Promise<ReadableStream<Uint8Array>>
  has(sha256: string): Promise<boolean>
  /** Succeeds for absent contents. */
  remove(sha256: string): Promise<void>
  /** Rejects if the storage cannot be used. */
  ping(): Promise<void>
}

export type StoredContent = {
  /** In hex. */
  readonly sha256: string
  readonly bytes: number
  /** The first 4,100 bytes at most, for format detection. */
  readonly head: Uint8Array
}
