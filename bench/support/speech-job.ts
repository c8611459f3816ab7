import type { Quantiles } from './histogram.ts'
import type { Encoding } from './speech-encoding.ts'
import type { SpeechFaults } from './speech-plan.ts'

/** Job of the speech clients, sent as JSON on their standard input. */
export type SpeechJob = {
  readonly port: number
  readonly bearer: string
  readonly sessions: number
  /** Seconds of audio per session; wall clock for flooding clients. */
  readonly seconds: number
  /** `live`: 20 ms frames in real time, with credit. `flood`: as fast as the socket accepts. */
  readonly mode: 'live' | 'flood'
  /** Of `flood`: `pcm_int16`. */
  readonly encoding: Encoding
  /** Duration over which sessions are started evenly. */
  readonly rampMs: number
  /** Sessions that are still open then have failed. */
  readonly deadlineMs: number
  readonly progressMs: number
}

export type SpeechProgress = {
  readonly progress: {
    readonly elapsedMs: number
    readonly sessionsOpen: number
    readonly framesSent: number
    readonly finals: number
    readonly faults: SpeechFaults
  }
}

/** Result, as JSON on standard output. */
export type SpeechReport = {
  readonly elapsedMs: number
  readonly framesSent: number
  readonly finals: number
  readonly partials: number
  readonly words: number
  readonly acks: number
  readonly rollovers: number
  readonly untranscribedMs: number
  readonly faults: SpeechFaults
  /** Sessions by close code. */
  readonly closeCodes: Readonly<Record<string, number>>
  /** Time from the last frame of an utterance to its final. */
  readonly finalMs: Quantiles
  /** Lateness of sent frames. */
  readonly latenessMs: Quantiles
  /** Recognised audio per session in ms: minimum, median, maximum. */
  readonly heardMs: readonly [number, number, number]
}
