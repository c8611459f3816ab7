/**
 * Where somebody speaks, told by energy alone: good enough to notice that an engine leaves speech
 * without a word and to cut where there are no words, and far too simple to drop audio by. Steady
 * noise, however loud, counts as silence once it has lasted `floorMs`.
 */
export type VoiceActivity = {
  /** The changes that these samples bring, oldest first; the array is not to be kept. */
  push(samples: Int16Array): readonly VoiceChange[]
  /** The speech that is going on, as far as it was heard; null in silence. */
  current(): VoiceStretch | null
  /** Ends the speech that is going on here; what is said after it is speech of its own. */
  cut(): VoiceStretch | null
  /** Speech in what was pushed, without the pauses. */
  speechMs(): number
}

/** Speech has begun, or the stretch that has ended. Times are from the first sample. */
export type VoiceChange =
  | { readonly speaking: true; readonly atMs: number }
  | ({ readonly speaking: false; readonly atMs: number } & VoiceStretch)

export type VoiceStretch = {
  readonly startMs: number
  readonly endMs: number
  /** The mean level in dB below the loudest that samples can be; -100 at the lowest. */
  readonly levelDbfs: number
}

const frameMs = 20
/** So many loud frames in a row begin speech: a click does not. */
const onsetFrames = 3
/** So much quiet ends it: shorter pauses belong to what is said. */
const hangoverMs = 400
/** Nothing quieter is speech: -50 dBFS. */
const powerMin = 1e-5
/** Speech begins at 10 dB above the floor, and goes on down to 6 dB above it. */
const onsetRatio = 10
const holdRatio = 4
/** The floor is the quietest frame of the last blocks. */
const floorBlockMs = 500
const floorMs = 5_000
const fullScale = 32_768
const levelMin = -100

const none: readonly VoiceChange[] = []

export function createVoiceActivity(sampleRateHz: number): VoiceActivity {
  return new EnergyDetector(sampleRateHz)
}

class EnergyDetector implements VoiceActivity {
  readonly #sampleRateHz: number
  readonly #frameSamples: number
  readonly #floor = createFloor()
  #frameSum = 0
  #frameFilled = 0
  #samplesSeen = 0
  #loudFrames = 0
  #loudFramesTotal = 0
  #onsetSum = 0
  #speaking = false
  #startSample = 0
  #endSample = 0
  /** Powers of the loud frames of what is said now, and their number. */
  #speechSum = 0
  #speechFrames = 0

  constructor(sampleRateHz: number) {
    this.#sampleRateHz = sampleRateHz
    this.#frameSamples = Math.round((sampleRateHz * frameMs) / 1000)
  }

  push(samples: Int16Array): readonly VoiceChange[] {
    let changes: VoiceChange[] | null = null
    for (let at = 0; at < samples.length; ) {
      const end = Math.min(samples.length, at + this.#frameSamples - this.#frameFilled)
      this.#frameSum += sumOfSquares(samples, at, end)
      this.#frameFilled += end - at
      at = end
      if (this.#frameFilled < this.#frameSamples) break
      const change = this.#closeFrame()
      if (change === null) continue
      changes ??= []
      changes.push(change)
    }
    return changes ?? none
  }

  current(): VoiceStretch | null {
    if (!this.#speaking) return null
    const power = this.#speechSum / Math.max(1, this.#speechFrames)
    return {
      startMs: this.#toMs(this.#startSample),
      endMs: this.#toMs(this.#endSample),
      levelDbfs: Math.max(levelMin, 10 * Math.log10(Math.max(power, Number.MIN_VALUE))),
    }
  }

  cut(): VoiceStretch | null {
    const stretch = this.current()
    this.#speaking = false
    this.#loudFrames = 0
    return stretch
  }

  speechMs(): number {
    return this.#loudFramesTotal * frameMs
  }

  #closeFrame(): VoiceChange | null {
    const power = this.#frameSum / this.#frameSamples / (fullScale * fullScale)
    const ratio = this.#speaking ? holdRatio : onsetRatio
    const isLoud = power >= Math.max(powerMin, this.#floor.power() * ratio)
    this.#floor.add(power)
    this.#frameSum = 0
    this.#frameFilled = 0
    this.#samplesSeen += this.#frameSamples
    if (this.#speaking) return isLoud ? this.#goOn(power) : this.#endIfQuiet()
    return isLoud ? this.#beginIfLasting(power) : this.#forgetOnset()
  }

  #beginIfLasting(power: number): VoiceChange | null {
    this.#onsetSum = this.#loudFrames === 0 ? power : this.#onsetSum + power
    this.#loudFrames += 1
    if (this.#loudFrames < onsetFrames) return null
    this.#speaking = true
    this.#startSample = this.#samplesSeen - this.#loudFrames * this.#frameSamples
    this.#endSample = this.#samplesSeen
    this.#speechSum = this.#onsetSum
    this.#speechFrames = this.#loudFrames
    this.#loudFramesTotal += this.#loudFrames
    return { speaking: true, atMs: this.#toMs(this.#startSample) }
  }

  #forgetOnset(): null {
    this.#loudFrames = 0
    return null
  }

  #goOn(power: number): null {
    this.#endSample = this.#samplesSeen
    this.#speechSum += power
    this.#speechFrames += 1
    this.#loudFramesTotal += 1
    return null
  }

  #endIfQuiet(): VoiceChange | null {
    if (this.#toMs(this.#samplesSeen - this.#endSample) < hangoverMs) return null
    const stretch = this.cut()
    return stretch && { speaking: false, atMs: stretch.endMs, ...stretch }
  }

  #toMs(samples: number): number {
    return Math.round((samples * 1000) / this.#sampleRateHz)
  }
}

/** Every sample passes here, and an iterator would cost several times as much. */
function sumOfSquares(samples: Int16Array, from: number, end: number): number {
  let sum = 0
  for (let at = from; at < end; at++) {
    const sample = samples[at] as number
    sum += sample * sample
  }
  return sum
}

/** The quietest frame of the last while, forgotten block by block. */
function createFloor() {
  // Nothing is known at first, so that somebody who speaks at once is heard.
  const blocks = new Float64Array(floorMs / floorBlockMs)
  const framesPerBlock = floorBlockMs / frameMs
  let at = 0
  let frames = 0
  let lowest = 0
  let quietest = Number.POSITIVE_INFINITY
  return {
    power: () => lowest,
    add(power: number): void {
      quietest = Math.min(quietest, power)
      lowest = Math.min(lowest, power)
      frames += 1
      if (frames < framesPerBlock) return
      blocks[at] = quietest
      at = (at + 1) % blocks.length
      lowest = blocks.reduce((low, block) => Math.min(low, block))
      quietest = Number.POSITIVE_INFINITY
      frames = 0
    },
  }
}
