import { VoiceActivity } from '#speech/voice-activity.ts'

/** A piece of audio that is recognised on its own. Times are milliseconds of the session. */
export type Segment = {
  readonly samples: Int16Array
  /** The time of the first sample. */
  readonly fromMs: number
  readonly speechFromMs: number
  readonly speechToMs: number
  /** Words before and after belong to the neighbours of a split; their audio is context. */
  readonly own: { readonly fromMs: number; readonly toMs: number }
  /** False if a long utterance was split. */
  readonly speechFinal: boolean
}

export type SegmenterOptions = {
  readonly sampleRateHz: number
  /** Silence that ends a segment; at least what the voice-activity detector needs. */
  readonly endpointingMs: number
  /** A longer segment is split where it is quietest. */
  readonly segmentMsMax: number
  /** Audio around a split that both segments contain; 0 without word times. */
  readonly overlapMs: () => number
}

/** Audio kept before speech, in case the detector missed its beginning, and after it. */
const leadMs = 300
const trailMs = 300
/** The detector reports speech this late. */
const onsetMs = 100
/** The longest piece of audio that is written at once. */
const pieceMsMax = 1_000
/** A split is searched in the last part of a segment. */
const splitShare = 0.6
const quietWindowMs = 60

/**
 * Cuts the audio of one session into segments of speech. Holds the audio of the open segment only, in
 * a buffer of fixed size.
 */
export class Segmenter {
  readonly #options: SegmenterOptions
  readonly #activity: VoiceActivity
  readonly #audio: Int16Array
  /** The position of the first sample of the buffer, and how many there are. */
  #start = 0
  #length = 0
  /** Positions of the open segment; null in silence. */
  #open: { from: number; speechFrom: number; isSplit: boolean } | null = null
  /** Where the last speech of the open segment ended; null while it goes on. */
  #speechTo: number | null = null
  /** Where the segment before ended: its audio is not repeated. */
  #closedTo = 0

  constructor(options: SegmenterOptions) {
    this.#options = options
    this.#activity = new VoiceActivity(options.sampleRateHz)
    this.#audio = new Int16Array(
      this.#samples(options.segmentMsMax + options.endpointingMs + leadMs + trailMs + pieceMsMax),
    )
  }

  /** The position of the end of the audio. */
  get end(): number {
    return this.#start + this.#length
  }

  /** Returns the times at which speech started, and the segments that ended. */
  push(samples: Int16Array): { starts: readonly number[]; segments: readonly Segment[] } {
    const starts: number[] = []
    const segments: Segment[] = []
    const step = this.#samples(pieceMsMax)
    for (let at = 0; at < samples.length; at += step) {
      this.#pushPiece(samples.subarray(at, at + step), starts, segments)
    }
    return { starts, segments }
  }

  /** The audio of the open segment so far, copied; null in silence. */
  current(): Segment | null {
    return this.#open === null ? null : this.#cut(this.end, this.#speechTo ?? this.end, false)
  }

  /** Closes the open segment. */
  flush(speechFinal: boolean): Segment | null {
    const segment = this.#open === null ? null : this.#close(speechFinal)
    this.#activity.cut()
    return segment
  }

  #pushPiece(piece: Int16Array, starts: number[], segments: Segment[]): void {
    this.#audio.set(piece, this.#length)
    this.#length += piece.length
    for (const change of this.#activity.push(piece)) {
      const at = this.#samples(change.atMs)
      if (!change.speaking) this.#speechTo = at
      else {
        // Speech that goes on within the pause that ends a segment belongs to it.
        if (this.#isPauseOver(at)) segments.push(this.#close(true))
        this.#speechTo = null
        if (this.#open !== null) continue
        starts.push(change.atMs)
        const from = Math.max(this.#start, this.#closedTo, at - this.#samples(leadMs))
        this.#open = { from, speechFrom: Math.max(from, at), isSplit: false }
      }
    }
    if (this.#isPauseOver(this.end)) segments.push(this.#close(true))
    if (
      this.#open !== null &&
      this.end - this.#open.from >= this.#samples(this.#options.segmentMsMax)
    ) {
      segments.push(this.#split(this.#open))
    }
    this.#drop()
  }

  #isPauseOver(at: number): boolean {
    if (this.#open === null || this.#speechTo === null) return false
    return at - this.#speechTo >= this.#samples(this.#options.endpointingMs)
  }

  #close(speechFinal: boolean): Segment {
    const speechTo = this.#speechTo ?? this.end
    this.#closedTo = Math.min(this.end, speechTo + this.#samples(trailMs))
    const segment = this.#cut(this.#closedTo, speechTo, speechFinal)
    this.#open = null
    this.#speechTo = null
    return segment
  }

  /** Splits the open segment at its quietest moment; the speech continues in the next one. */
  #split({ from }: { from: number }): Segment {
    const overlap = this.#samples(this.#options.overlapMs())
    const latest = this.end - overlap
    const at = this.#quietest(from + Math.floor((latest - from) * splitShare), latest)
    const segment = this.#cut(at + overlap, Math.min(at, this.#speechTo ?? at), false)
    this.#open = { from: Math.max(from, at - overlap), speechFrom: at, isSplit: true }
    return { ...segment, own: { ...segment.own, toMs: this.#toMs(at) } }
  }

  #cut(to: number, speechTo: number, speechFinal: boolean): Segment {
    const { from, speechFrom, isSplit } = this.#open ?? { from: to, speechFrom: to, isSplit: false }
    const speechFromMs = this.#toMs(speechFrom)
    return {
      samples: this.#audio.slice(from - this.#start, to - this.#start),
      fromMs: this.#toMs(from),
      speechFromMs,
      speechToMs: this.#toMs(Math.max(speechFrom, speechTo)),
      own: {
        fromMs: isSplit ? speechFromMs : Number.NEGATIVE_INFINITY,
        toMs: Number.POSITIVE_INFINITY,
      },
      speechFinal,
    }
  }

  #quietest(from: number, to: number): number {
    const window = this.#samples(quietWindowMs)
    let quietest = to
    let least = Number.POSITIVE_INFINITY
    for (let at = from; at + window <= to; at += window) {
      let sum = 0
      for (let sample = at; sample < at + window; sample++) {
        sum += Math.abs(this.#audio[sample - this.#start] as number)
      }
      if (sum >= least) continue
      least = sum
      quietest = at + Math.floor(window / 2)
    }
    return quietest
  }

  /** Drops audio that no segment will contain. */
  #drop(): void {
    const kept = this.#open?.from ?? this.end - this.#samples(leadMs + onsetMs)
    const count = Math.max(0, kept - this.#start)
    if (count === 0) return
    this.#audio.copyWithin(0, count, this.#length)
    this.#start += count
    this.#length -= count
  }

  #samples(ms: number): number {
    return Math.round((ms * this.#options.sampleRateHz) / 1000)
  }

  #toMs(samples: number): number {
    return Math.round((samples * 1000) / this.#options.sampleRateHz)
  }
}
