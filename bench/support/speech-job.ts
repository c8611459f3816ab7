import type { Quantiles } from './histogram.ts'
import type { SpeechFaults } from './speech-plan.ts'

/** What the speech clients shall do; they get this as JSON on their standard input. */
export type SpeechJob = {
  readonly port: number
  readonly bearer: string
  readonly sessions: number
  /** Of audio in each session; of the clock, for clients that flood. */
  readonly seconds: number
  /** `live`: a frame of 20 ms at its time, with credit. `flood`: all that the socket takes. */
  readonly mode: 'live' | 'flood'
  /** The sessions start spread evenly over so long. */
  readonly rampMs: number
  /** What has not ended by then has failed. */
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

/** What came of it: one JSON on standard output. */
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
  /** Sessions by the code that their sockets were closed with. */
  readonly closeCodes: Readonly<Record<string, number>>
  /** From the end of an utterance, when its last frame was sent, to its final. */
  readonly finalMs: Quantiles
  /** A frame that was sent after its time, by so much. */
  readonly latenessMs: Quantiles
  /** Audio of each session that has come back as words, in ms: the least, the middle, the most. */
  readonly heardMs: readonly [number, number, number]
}
