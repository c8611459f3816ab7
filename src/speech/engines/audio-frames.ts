/** Frames of one length, cut from writes of any. */
export type AudioFrames = {
  write(samples: Int16Array): void
  /** Sends what has not filled a frame. */
  flush(): void
  /** Samples that have not filled a frame. */
  held(): number
  stop(): void
}

type AudioFramesOptions = {
  readonly sampleRateHz: number
  readonly frameMs: number
  /** The samples are to be used before it returns. */
  readonly send: (samples: Int16Array) => void
}

/** A frame that is not filled in so many times its length goes out as it is. */
const patienceFrames = 3

export function createAudioFrames({
  sampleRateHz,
  frameMs,
  send,
}: AudioFramesOptions): AudioFrames {
  const frame = new Int16Array(Math.round((sampleRateHz * frameMs) / 1000))
  let filled = 0
  let isStopped = false
  let timer: Timer | null = null
  const flush = () => {
    if (timer !== null) clearTimeout(timer)
    timer = null
    if (filled === 0) return
    const samples = filled === frame.length ? frame : frame.subarray(0, filled)
    filled = 0
    send(samples)
  }
  return {
    write(samples) {
      for (let at = 0; at < samples.length && !isStopped; ) {
        const fits = at === 0 && samples.length <= frame.length - filled
        const piece = fits ? samples : samples.subarray(at, at + frame.length - filled)
        frame.set(piece, filled)
        filled += piece.length
        at += piece.length
        if (filled === frame.length) flush()
      }
      if (filled > 0 && !isStopped) timer ??= setTimeout(flush, frameMs * patienceFrames)
    },
    flush,
    held: () => filled,
    stop() {
      isStopped = true
      filled = 0
      if (timer !== null) clearTimeout(timer)
      timer = null
    },
  }
}

/** PCM of 16 bit, little-endian, as every machine has it that this runs on. */
export function bytesOf(samples: Int16Array): Buffer {
  return Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength)
}
