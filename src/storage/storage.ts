/**
 * Where contents are kept, each under the hash of its bytes, so that equal contents are kept once
 * and a content never changes. Disk and S3 keep this contract; what is above cannot tell which.
 */
export type Storage = {
  /**
   * Takes a content at the speed at which it can be kept, with memory that does not grow with it.
   * It is there, whole and durable, when this resolves; otherwise nothing of it is left.
   *
   * Throws `request_too_large` past `bytesMax`, `insufficient_storage` where there is no room, and
   * what the source throws.
   */
  put(source: AsyncIterable<Uint8Array>, limits: { bytesMax: number }): Promise<StoredContent>
  /** The bytes from `start` to before `end`; throws `not_found` where the content is gone. */
  read(sha256: string, range?: { start: number; end: number }): Promise<ReadableStream<Uint8Array>>
  has(sha256: string): Promise<boolean>
  /** Harmless for what is not there. */
  remove(sha256: string): Promise<void>
  /** Resolves when it can be used, rejects when it cannot. */
  ping(): Promise<void>
}

export type StoredContent = {
  /** In hex. */
  readonly sha256: string
  readonly bytes: number
  /** The first bytes, as many as telling the kind of a file takes (4,100 at most). */
  readonly head: Uint8Array
}
