export type Player = {
  /** Plays samples of `rateHz` after those before; resolves when more are needed. */
  play(samples: Int16Array | Float32Array): Promise<void>
  /** Resolves when everything was heard. */
  drain(): Promise<void>
  stop(): void
}

export const rateHz = 48_000

/** So much audio is held; a faster stream waits, up to the upstream. */
const aheadS = 8
/** Until the first sample is heard, so that the second arrives in time. */
const leadS = 0.08
const lookMs = 100
/** A browser that plays nothing says so by a clock that stands still. */
const blockedMs = 3_000

/** Plays samples while they arrive. `onFirst` is called when the first can be heard. */
export function createPlayer(onFirst: () => void): Player {
  let audio: AudioContext | null = null
  let endsAt = 0
  let isStopped = false

  function open(): AudioContext {
    if (audio !== null) return audio
    audio = new AudioContext({ sampleRate: rateHz })
    void audio.resume()
    onFirst()
    return audio
  }

  async function waitUntil(leftS: number): Promise<void> {
    let last = audio?.currentTime ?? 0
    let movedAt = performance.now()
    while (!isStopped && audio !== null && endsAt - audio.currentTime > leftS) {
      await new Promise((resolve) => setTimeout(resolve, lookMs))
      if (audio.currentTime !== last) {
        last = audio.currentTime
        movedAt = performance.now()
      } else if (performance.now() - movedAt > blockedMs) {
        throw new PlaybackBlocked()
      }
    }
  }

  return {
    async play(samples) {
      if (isStopped || samples.length === 0) return
      const context = open()
      const buffer = context.createBuffer(1, samples.length, rateHz)
      buffer.copyToChannel(toFloats(samples), 0)
      const source = context.createBufferSource()
      source.buffer = buffer
      source.connect(context.destination)
      endsAt = Math.max(endsAt, context.currentTime + leadS)
      source.start(endsAt)
      endsAt += buffer.duration
      await waitUntil(aheadS)
    },
    drain: () => waitUntil(0),
    stop() {
      isStopped = true
      void audio?.close()
      audio = null
    },
  }
}

function toFloats(samples: Int16Array | Float32Array): Float32Array<ArrayBuffer> {
  if (samples instanceof Int16Array) return Float32Array.from(samples, (one) => one / 32_768)
  return new Float32Array(samples)
}

/** The browser accepts audio and plays none. */
export class PlaybackBlocked extends Error {
  override readonly name = 'PlaybackBlocked'
}
