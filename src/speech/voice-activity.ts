/** Speech has started, or the span of speech that has ended. Times are from the first sample. */
export type VoiceChange =
  | { readonly speaking: true; readonly atMs: number }
  | ({ readonly speaking: false; readonly atMs: number } & VoiceSpan)

export type VoiceSpan = {
  readonly startMs: number
  readonly endMs: number
  /** The mean level in dBFS; at least -100. */
  readonly levelDbfs: number
}

const frameMs = 20
/** Consecutive loud frames that start speech; a click is shorter. */
const onsetFrames = 3
/** Silence that ends speech; shorter pauses are part of it. */
const hangoverMs = 400
/** The minimum power of speech: -50 dBFS. */
const powerMin = 1e-5
/** Speech starts at 10 dB above the noise floor and continues down to 6 dB above it. */
const onsetRatio = 10
const holdRatio = 4
/** The noise floor is the quietest frame of the last blocks. */
const floorBlockMs = 500
const floorMs = 5_000
const fullScale = 32_768
const levelMin = -100

const none: readonly VoiceChange[] = []

/**
 * Detects speech by its energy: accurate enough to notice an engine that returns no text and to cut
 * audio in pauses, but not to drop audio. Steady noise of any level counts as silence after
 * `floorMs`.
 */
export class VoiceActivity {
  readonly #sampleRateHz: number
  readonly #frameSamples: number
  readonly #floor = createNoiseFloor()
  #frameSum = 0
  #frameFilled = 0
  #samplesSeen = 0
  #loudFrames = 0
  #onsetSum = 0
  #speaking = false
  #startSample = 0
  #endSample = 0
  /** The sum of powers and number of loud frames of the current speech. */
  #speechSum = 0
  #speechFrames = 0

  constructor(sampleRateHz: number) {
    this.#sampleRateHz = sampleRateHz
    this.#frameSamples = Math.round((sampleRateHz * frameMs) / 1000)
  }

  /** Returns the changes within these samples, oldest first. The array must not be kept. */
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

  /** The speech in progress; null in silence, and where none has followed a division. */
  current(): VoiceSpan | null {
    if (!this.#speaking || this.#speechFrames === 0) return null
    const power = this.#speechSum / this.#speechFrames
    return {
      startMs: this.#toMs(this.#startSample),
      endMs: this.#toMs(this.#endSample),
      levelDbfs: Math.max(levelMin, 10 * Math.log10(Math.max(power, Number.MIN_VALUE))),
    }
  }

  /** Ends the speech in progress; what follows is separate speech. */
  cut(): VoiceSpan | null {
    const span = this.current()
    this.#speaking = false
    this.#loudFrames = 0
    return span
  }

  /**
   * Returns the speech in progress as a span of its own. The speech goes on: what follows needs no
   * onset, so that the spans together are the speech that an undivided detector finds.
   */
  divide(): VoiceSpan | null {
    const span = this.current()
    this.#speechSum = 0
    this.#speechFrames = 0
    return span
  }

  #closeFrame(): VoiceChange | null {
    const power = this.#frameSum / this.#frameSamples / (fullScale * fullScale)
    const ratio = this.#speaking ? holdRatio : onsetRatio
    const isLoud = power >= Math.max(powerMin, this.#floor.power() * ratio)
    this.#floor.add(power)
    this.#frameSum = 0
    this.#frameFilled = 0
    this.#samplesSeen += this.#frameSamples
    if (this.#speaking) return isLoud ? this.#continueSpeech(power) : this.#endAfterHangover()
    if (isLoud) return this.#startAfterOnset(power)
    this.#loudFrames = 0
    return null
  }

  #startAfterOnset(power: number): VoiceChange | null {
    this.#onsetSum = this.#loudFrames === 0 ? power : this.#onsetSum + power
    this.#loudFrames += 1
    if (this.#loudFrames < onsetFrames) return null
    this.#speaking = true
    this.#startSample = this.#samplesSeen - this.#loudFrames * this.#frameSamples
    this.#endSample = this.#samplesSeen
    this.#speechSum = this.#onsetSum
    this.#speechFrames = this.#loudFrames
    return { speaking: true, atMs: this.#toMs(this.#startSample) }
  }

  #continueSpeech(power: number): null {
    if (this.#speechFrames === 0) this.#startSample = this.#samplesSeen - this.#frameSamples
    this.#endSample = this.#samplesSeen
    this.#speechSum += power
    this.#speechFrames += 1
    return null
  }

  #endAfterHangover(): VoiceChange | null {
    if (this.#toMs(this.#samplesSeen - this.#endSample) < hangoverMs) return null
    const span = this.cut()
    return span && { speaking: false, atMs: span.endMs, ...span }
  }

  #toMs(samples: number): number {
    return Math.round((samples * 1000) / this.#sampleRateHz)
  }
}

/** Runs for every sample; an iterator would be several times slower. */
function sumOfSquares(samples: Int16Array, from: number, end: number): number {
  let sum = 0
  for (let at = from; at < end; at++) {
    const sample = samples[at] as number
    sum += sample * sample
  }
  return sum
}

/** The noise floor: the quietest recent frame, in blocks that expire one by one. */
function createNoiseFloor() {
  // Zero at first, so that speech at the very start is detected.
  const blocks = new Float64Array(floorMs / floorBlockMs)
  const framesPerBlock = floorBlockMs / frameMs
  let at = 0
  let frames = 0
  let floor = 0
  let blockMin = Number.POSITIVE_INFINITY
  return {
    power: () => floor,
    add(power: number): void {
      blockMin = Math.min(blockMin, power)
      floor = Math.min(floor, power)
      frames += 1
      if (frames < framesPerBlock) return
      blocks[at] = blockMin
      at = (at + 1) % blocks.length
      floor = blocks.reduce((low, block) => Math.min(low, block))
      blockMin = Number.POSITIVE_INFINITY
      frames = 0
    },
  }
}
