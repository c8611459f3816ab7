import { AudioError, type AudioFaults } from './decoder.ts'

/** Where so much is broken, the bytes are not what they were said to be. */
const corruptFramesMax = 100

/** Bytes in a row that hold nothing which can be decoded count as one corrupt frame each time. */
const garbageBytesPerFault = 4096

export function createFaults(): AudioFaults {
  return { clippedSamples: 0, invalidSamples: 0, corruptFrames: 0, gaps: 0 }
}

export function countCorrupt(faults: AudioFaults) {
  faults.corruptFrames += 1
  if (faults.corruptFrames <= corruptFramesMax) return
  throw new AudioError(
    'bad_audio',
    `More than ${corruptFramesMax} frames of the audio could not be decoded.`,
    { corrupt_frames: faults.corruptFrames },
  )
}

/** Counts bytes that are passed over in search of something, as the faults that they amount to. */
export type GarbageCount = {
  skipped(bytes: number): void
  /** Something looked like what is searched for and was not it. Looking closely at many takes long. */
  mistaken(): void
  found(): void
}

export function createGarbageCount(faults: AudioFaults): GarbageCount {
  let run = 0
  return {
    skipped(bytes) {
      const before = Math.ceil(run / garbageBytesPerFault)
      run += bytes
      for (let at = before; at < Math.ceil(run / garbageBytesPerFault); at++) countCorrupt(faults)
    },
    mistaken() {
      // The first one is counted with the bytes that are passed over for it.
      if (run > 0) countCorrupt(faults)
    },
    found() {
      run = 0
    },
  }
}
