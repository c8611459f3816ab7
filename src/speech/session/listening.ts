import type { Config } from '#config/schema.ts'
import { assertNever } from '#lib/assert.ts'
import type {
  Recognition,
  RecognitionEvent,
  RecognitionStats,
} from '#speech/recognition/recognition.ts'
import type { ClientAudio } from './client-audio.ts'
import { type Handshake, readControl } from './client-frames.ts'
import { audioFault, internalFault, recognitionFault, tooManyFinalizes } from './faults.ts'
import type { SessionQuery } from './query.ts'
import type { Reports } from './reports.ts'
import type { SessionStats } from './server-frames.ts'
import { SessionError } from './session-error.ts'
import { openTranscribing, type Transcribing, type TranscribingDeps } from './transcribing.ts'
import type { Watch } from './watch.ts'

export type Ending = {
  readonly closeCode: number
  /** A code: `client_end`, that of the error, or why nobody is left to be told. */
  readonly reason: string
  readonly error: SessionError | null
  /** Of a session that was ready. */
  readonly stats: SessionStats | null
}

export type ListeningDeps = {
  readonly transcribing: TranscribingDeps
  readonly settings: Config['speech']
  readonly query: SessionQuery
  readonly handshake: Handshake
  readonly audio: ClientAudio
  readonly reports: Reports
  readonly watch: Watch
  readonly resumes: () => number
  /** False holds the audio up until `wake`. */
  readonly mayGoOn: () => boolean
  /** Called once; the last frame was reported then. */
  readonly ended: (ending: Ending) => void
}

/** Requests of one client for finals that may wait. */
const finalizesMax = 32
/** The recognition has the same limit for the last finals; this is for one that misses it. */
const finalsSlackMs = 1_000

/** From the messages of one session to its frames: whoever sends them and wherever they go. */
export class Listening {
  readonly #deps: ListeningDeps
  readonly #life = new AbortController()
  #transcribing: Transcribing | null = null
  /** What the engine said before the client was told that it is ready. */
  #early: RecognitionEvent[] = []
  #isInputEnded = false
  /** Why the input ended, where its client did not ask for it. */
  #endError: SessionError | null = null
  #ending: Ending | null = null
  /** Asked for and not answered. */
  #finalizes = 0
  #queuedMsMax = 0
  #wasReady = false

  constructor(deps: ListeningDeps) {
    this.#deps = deps
  }

  /** Opens the engine; until then nothing of its client is read. */
  async begin(): Promise<void> {
    const { audio, handshake, reports } = this.#deps
    audio.hold(true)
    try {
      const transcribing = await this.#open()
      if (this.#ending !== null) {
        transcribing.stop()
        return
      }
      this.#transcribing = transcribing
      this.#wasReady = true
    } catch (error) {
      this.fail(error)
      return
    }
    reports.ready(this.#transcribing.recognition, false)
    if (handshake.ignored.length > 0) reports.warn('unknown_fields', { fields: handshake.ignored })
    for (const event of this.#early.splice(0)) this.#hear(event)
    audio.hold(false)
    audio.checkFull()
    this.wake()
  }

  receive(message: string | Uint8Array): void {
    if (this.#ending !== null) return
    try {
      if (typeof message === 'string') this.#obey(message)
      else this.#take(message)
    } catch (error) {
      this.fail(error)
    }
  }

  wake(): void {
    this.#transcribing?.wake()
  }

  /** Takes nothing more. What has come is finished; then the error is told, if there is one. */
  endInput(error: SessionError | null): void {
    if (this.#ending !== null) return
    if (error !== null && this.#transcribing === null) {
      this.fail(error)
      return
    }
    if (this.#isInputEnded) return
    this.#isInputEnded = true
    this.#endError = error
    this.#deps.audio.inbox.end()
    this.wake()
  }

  /** Why it could not be finished in time: what it was ending for, if it was. */
  failInTime(error: SessionError): void {
    this.fail(this.#endError ?? error)
  }

  fail(cause: unknown, known?: RecognitionStats): void {
    if (this.#ending !== null) return
    const error = cause instanceof SessionError ? cause : internalFault(cause)
    const stats = this.#deps.reports.failed(error, this.#known(known))
    this.#finish({ closeCode: error.closeCode, reason: error.code, error, stats })
  }

  /** Ends it without a word. */
  abort(reason: string): void {
    if (this.#ending !== null) return
    const known = this.#known()
    const stats = known === null ? null : this.#deps.reports.count(known)
    this.#finish({ closeCode: 1011, reason, error: null, stats })
  }

  ending(): Ending | null {
    return this.#ending
  }

  recognition(): Recognition | null {
    return this.#transcribing?.recognition ?? null
  }

  /** Whether its client was told of it. */
  wasReady(): boolean {
    return this.#wasReady
  }

  takesAudio(): boolean {
    return this.#transcribing !== null && !this.#isInputEnded
  }

  /** Tells a client that asked for it what was taken. */
  acknowledge(): void {
    if (this.#transcribing === null || this.#ending !== null) return
    this.#deps.reports.acknowledge(this.#transcribing.recognition)
  }

  #open(): Promise<Transcribing> {
    const { audio, handshake, mayGoOn, query, transcribing } = this.#deps
    const { credit: _, ...options } = handshake.options
    return openTranscribing(transcribing, {
      options: {
        ...options,
        language: query.language,
        engineName: null,
        signal: this.#life.signal,
        listener: (event) => this.#hear(event),
      },
      format: handshake.format,
      inbox: audio.inbox,
      pump: {
        mayGoOn,
        took: () => {
          audio.checkRoom()
          this.acknowledge()
        },
        reachedEnd: () => this.#reachedEnd(),
        failed: (error) => this.fail(audioFault(error)),
      },
    })
  }

  #hear(event: RecognitionEvent): void {
    if (this.#ending !== null) return
    if (this.#transcribing === null) {
      this.#early.push(event)
      return
    }
    switch (event.type) {
      case 'writable':
        this.wake()
        break
      case 'progress':
        this.acknowledge()
        break
      case 'ended':
        this.#end(event.stats)
        break
      case 'failed':
        this.fail(this.#endError ?? recognitionFault(event.code), event.stats)
        break
      case 'finalized':
        this.#finalizes--
        this.#deps.reports.hear(event)
        break
      default:
        this.#deps.reports.hear(event)
    }
  }

  #obey(message: string): void {
    const control = readControl(message)
    switch (control.type) {
      case 'keepalive':
        break
      case 'session_end':
        this.endInput(null)
        break
      case 'finalize':
        this.#finalize(control.id ?? '')
        break
      default:
        assertNever(control)
    }
  }

  #finalize(id: string): void {
    if (this.#isInputEnded) return
    if (++this.#finalizes > finalizesMax) throw tooManyFinalizes(finalizesMax)
    this.#deps.audio.inbox.finalize(id)
    this.wake()
  }

  /** A message without any audio is the end of it. */
  #take(bytes: Uint8Array): void {
    const { audio } = this.#deps
    if (bytes.length === 0) {
      this.endInput(null)
      return
    }
    if (this.#isInputEnded) {
      audio.discard(bytes)
      return
    }
    audio.receive(bytes)
    this.wake()
    if (this.#ending !== null) return
    audio.checkFull()
    this.#queuedMsMax = Math.max(this.#queuedMsMax, this.#queuedMs())
  }

  #reachedEnd(): void {
    this.#deps.watch.finalsWithin(this.#deps.settings.finalizeMs + finalsSlackMs)
    this.#transcribing?.recognition.end()
  }

  #end(stats: RecognitionStats): void {
    if (this.#endError !== null) {
      this.fail(this.#endError, stats)
      return
    }
    const known = this.#known(stats)
    if (known === null) return
    const told = this.#deps.reports.ended(known)
    this.#finish({ closeCode: 1000, reason: 'client_end', error: null, stats: told })
  }

  #finish(ending: Ending): void {
    this.#ending = ending
    this.#life.abort()
    this.#transcribing?.stop()
    // It holds audio, and what is over may be kept for a while.
    this.#transcribing = null
    this.#deps.audio.close()
    this.#deps.ended(ending)
  }

  #known(stats?: RecognitionStats) {
    const transcribing = this.#transcribing
    if (transcribing === null) return null
    return {
      transcribing,
      stats: stats ?? transcribing.stop(),
      counts: {
        wallMs: this.#deps.watch.sinceMs(),
        queuedMsMax: this.#queuedMsMax,
        resumes: this.#deps.resumes(),
      },
    }
  }

  #queuedMs(): number {
    return this.#deps.audio.queuedMs(this.#transcribing?.decodedMs() ?? 0)
  }
}
