/** In hex. */
export type Digest = {
  readonly sha256: string
  /** Of git's object of the content, where it was asked for. */
  readonly gitSha1: string | null
}

/**
 * Hashes a file from its beginning while it is being written. What is written at the place that was
 * reached is hashed at once; what was written ahead of it is read back, when the gap has closed.
 */
export type PrefixHash = {
  /** These bytes were written, and up to `prefixEnd` there is no gap now. */
  advance(offset: number, pieces: readonly Uint8Array[], prefixEnd: number): void
  /** Of so many bytes, which are all there. */
  digest(bytes: number): Promise<Digest>
  restart(): void
}

/** What is read back at a time; it is hashed in one go, in less than a millisecond. */
const readBytes = 1024 * 1024

type Read = (offset: number, buffer: Uint8Array) => Promise<number>

/** `gitBytes`: the length of the content, where the hash of git is wanted too. */
export function createPrefixHash(read: Read, gitBytes: number | null): PrefixHash {
  let run = startRun(gitBytes)
  let reading: Promise<void> | null = null

  async function readUpTo(end: number): Promise<void> {
    const own = run
    const buffer = new Uint8Array(readBytes)
    while (own.at < end && own === run) {
      const wanted = buffer.subarray(0, Math.min(readBytes, end - own.at))
      const bytes = await read(own.at, wanted)
      if (bytes === 0) throw new Error('the part is shorter than it was written')
      own.take(wanted.subarray(0, bytes))
    }
  }
  function follow(end: number) {
    if (reading !== null || end <= run.at) return
    reading = readUpTo(end).finally(() => {
      reading = null
    })
    // It is met again by the one who asks for the digest.
    reading.catch(() => {})
  }
  return {
    advance(offset, pieces, prefixEnd) {
      if (reading === null && offset === run.at) for (const piece of pieces) run.take(piece)
      follow(prefixEnd)
    },
    async digest(bytes) {
      while (run.at < bytes) {
        follow(bytes)
        await reading
      }
      return run.digest()
    },
    restart() {
      run = startRun(gitBytes)
    },
  }
}

function startRun(gitBytes: number | null) {
  const sha256 = new Bun.CryptoHasher('sha256')
  const git = gitBytes === null ? null : new Bun.CryptoHasher('sha1').update(`blob ${gitBytes}\0`)
  const run = {
    at: 0,
    take(piece: Uint8Array) {
      sha256.update(piece)
      git?.update(piece)
      run.at += piece.length
    },
    digest: (): Digest => ({
      sha256: sha256.digest('hex'),
      gitSha1: git?.digest('hex') ?? null,
    }),
  }
  return run
}
