/** In hex. */
export type Digest = {
  readonly sha256: string
  /** SHA-1 of the git object, if requested. */
  readonly gitSha1: string | null
}

/** Bytes per read; hashing them takes less than a millisecond. */
const readBytes = 1024 * 1024

type Read = (offset: number, buffer: Uint8Array) => Promise<number>

/**
 * Hashes a file from its beginning while it is written in any order. Bytes at the current position
 * are hashed at once; bytes written ahead are read back when the gap before them has closed.
 *
 * `gitBytes`: the length of the content if the git hash is requested.
 */
export function createPrefixHash(read: Read, gitBytes: number | null) {
  let hasher = createHasher(gitBytes)
  let reading: Promise<void> | null = null

  async function readUpTo(end: number): Promise<void> {
    const own = hasher
    const buffer = new Uint8Array(readBytes)
    while (own.at < end && own === hasher) {
      const wanted = buffer.subarray(0, Math.min(readBytes, end - own.at))
      const bytes = await read(own.at, wanted)
      if (bytes === 0) throw new Error('the part is shorter than its written ranges')
      own.update(wanted.subarray(0, bytes))
    }
  }
  function startReading(end: number) {
    if (reading !== null || end <= hasher.at) return
    reading = readUpTo(end).finally(() => {
      reading = null
    })
    // `digest` repeats a failed read.
    reading.catch(() => {})
  }
  return {
    /** These bytes were written, and the file has no gap before `prefixEnd`. */
    advance(offset: number, chunks: readonly Uint8Array[], prefixEnd: number): void {
      if (reading === null && offset === hasher.at) {
        for (const chunk of chunks) hasher.update(chunk)
      }
      startReading(prefixEnd)
    },
    /** The digest of a complete file of this length. */
    async digest(bytes: number): Promise<Digest> {
      while (hasher.at < bytes) {
        startReading(bytes)
        await reading
      }
      return hasher.digest()
    },
    restart(): void {
      hasher = createHasher(gitBytes)
    },
  }
}

function createHasher(gitBytes: number | null) {
  const sha256 = new Bun.CryptoHasher('sha256')
  const git = gitBytes === null ? null : new Bun.CryptoHasher('sha1').update(`blob ${gitBytes}\0`)
  const hasher = {
    at: 0,
    update(chunk: Uint8Array) {
      sha256.update(chunk)
      git?.update(chunk)
      hasher.at += chunk.length
    },
    digest: (): Digest => ({
      sha256: sha256.digest('hex'),
      gitSha1: git?.digest('hex') ?? null,
    }),
  }
  return hasher
}
