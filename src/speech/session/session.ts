import { timingSafeEqual } from 'node:crypto'
import type { Config } from '#config/schema.ts'
import { newId } from '#lib/id.ts'
import { type ClientAudio, createClientAudio } from './client-audio.ts'
import type { Handshake, ResumeClaim } from './client-frames.ts'
import { draining, verdictFault } from './faults.ts'
import type { AudioBudget } from './intake.ts'
import { type Ending, Listening } from './listening.ts'
import { createOutbox, type Outbox, type Wire } from './outbox.ts'
import type { SessionQuery } from './query.ts'
import { renderSessionError } from './render-frames.ts'
import { createReports, type Reports } from './reports.ts'
import { renderFrame } from './server-frames.ts'
import { SessionError } from './session-error.ts'
import type { TranscribingDeps } from './transcribing.ts'
import { createWatch, type Verdict, type Watch } from './watch.ts'

export type SessionDeps = TranscribingDeps & {
  readonly settings: Config['speech']
  /** How long a session may go on once the process was told to stop. */
  readonly drainMs: number
  readonly budget: AudioBudget
}

export type SessionStart = {
  readonly query: SessionQuery
  readonly handshake: Handshake
  readonly userId: string
  readonly requestId: string
}

/** The socket that a session has at the moment. */
export type Link = {
  readonly wire: Wire
  /** Closes it in order. */
  finish(closeCode: number, reason: string): void
  /** Another socket has its session now, as the frame says. */
  supersede(frame: string, error: SessionError): void
}

/** Codes of clients that leave on purpose; after any other, they may come back. */
const deliberateCodes = [1000, 1001, 1005]
/** While a client is not read, only what is sent finds out that it has gone. */
const pingMs = 1_000

/**
 * One live session of a caller and its sockets: it is bound to one, waits for the next when that is
 * lost, and ends exactly once.
 */
export class SpeechSession {
  readonly id = newId('stt_')
  readonly start: SessionStart
  readonly #resumeToken = newId('')
  readonly #settings: Config['speech']
  readonly #drainMs: number
  readonly #outbox: Outbox
  readonly #audio: ClientAudio
  readonly #reports: Reports
  readonly #watch: Watch
  readonly #listening: Listening
  #link: Link | null = null
  #endedAt = 0
  #isAbandoned = false
  #isDraining = false
  #pingedAt = 0
  #resumes = 0

  /** `ended` is called once, when it costs no engine any more. */
  constructor(deps: SessionDeps, start: SessionStart, ended: (ending: Ending) => void) {
    const { budget, settings } = deps
    const { handshake, query } = start
    const outbox = createOutbox({ logCharsMax: settings.resumeCharsMax })
    const audio = createClientAudio({
      format: handshake.format,
      usesCredit: handshake.options.credit,
      readerIsFull: () => this.#readerIsFull(),
      settings,
      budget,
    })
    const resumeToken = settings.resumeMs > 0 ? this.#resumeToken : null
    this.start = start
    this.#settings = settings
    this.#drainMs = deps.drainMs
    this.#outbox = outbox
    this.#audio = audio
    this.#watch = createWatch(settings)
    this.#reports = createReports({
      id: this.id,
      query,
      handshake,
      resumeToken,
      settings,
      outbox,
      audio,
    })
    this.#listening = new Listening({
      transcribing: deps,
      settings,
      query,
      handshake,
      audio,
      reports: this.#reports,
      watch: this.#watch,
      resumes: () => this.#resumes,
      mayGoOn: () => !this.#readerIsFull(),
      ended: (ending) => {
        this.#endedAt = performance.now()
        ended(ending)
        this.#close(ending)
      },
    })
  }

  /** Begins at its first socket. */
  open(link: Link): void {
    this.#attach(link, 0)
    void this.#listening.begin()
  }

  receive(message: string | Uint8Array): void {
    this.#watch.heard()
    this.#listening.receive(message)
  }

  /** For what is wrong with a message as a whole. */
  fail(error: unknown): void {
    this.#listening.fail(error)
  }

  drained(): void {
    this.#outbox.drained()
    this.#audio.checkRoom()
    this.#listening.wake()
  }

  /** Its socket is gone. */
  lost(closeCode: number): void {
    this.#detach()
    if (this.isOver()) return
    if (!this.isResumable() || deliberateCodes.includes(closeCode)) this.abort('client_left')
    else this.#listening.wake()
  }

  /** Whether a client can come back to it, be it for its last frames. */
  isResumable(): boolean {
    return this.#listening.wasReady() && !this.#isAbandoned && this.#settings.resumeMs > 0
  }

  /** Whether this is the session that a client means, and the client the one that it belongs to. */
  isClaimedBy(claim: ResumeClaim, claimant: { userId: string; query: SessionQuery }): boolean {
    const { query, userId } = this.start
    const [given, own] = [Buffer.from(claim.token), Buffer.from(this.#resumeToken)]
    return (
      this.isResumable() &&
      given.length === own.length &&
      timingSafeEqual(given, own) &&
      claimant.userId === userId &&
      claimant.query.language === query.language &&
      claimant.query.encoding === query.encoding &&
      claimant.query.sampleRateHz === query.sampleRateHz
    )
  }

  /** Goes on at another socket. What was missed comes first, then `session_ready`. */
  resume(link: Link, lastSeq: number): void {
    this.#supersede()
    const { forgottenSeq } = this.#attach(link, lastSeq)
    const ending = this.#listening.ending()
    if (ending !== null) {
      this.#close(ending)
      return
    }
    this.#resumes++
    this.#watch.heard()
    if (forgottenSeq > lastSeq) {
      this.#reports.warn('frames_forgotten', { after_seq: lastSeq, to_seq: forgottenSeq })
    }
    const recognition = this.#listening.recognition()
    if (recognition !== null) this.#reports.ready(recognition, true)
    this.#audio.checkFull()
  }

  /** Looks at the deadlines, and does what is due. */
  look(): void {
    // Measured: Bun 1.4.5 does not call `drain` where what waited went out as a message came in.
    this.drained()
    if (this.isOver()) {
      // Whoever does not take the last frames is not waited for.
      const isStuck = performance.now() - this.#endedAt >= this.#settings.readerStallMs
      if (isStuck) this.#link?.wire.terminate()
      return
    }
    const verdict = this.#watch.look({
      isAttached: this.#link !== null,
      isHeldUp: this.#audio.isPaused() || this.#audio.inbox.storedBytes() > 0,
      takesAudio: this.#listening.takesAudio(),
      readerIsFull: this.#readerIsFull(),
    })
    if (verdict !== null) this.#judge(verdict)
    this.#ping()
    this.#listening.acknowledge()
  }

  /** The process stops: what has come is finished, and nothing more is taken. */
  drain(): void {
    if (this.#link === null) {
      this.abort('draining')
      return
    }
    this.#isDraining = true
    this.#watch.finalsWithin(this.#drainMs)
    this.#listening.endInput(draining())
  }

  /** Ends it without a word, and nobody can come back for it. */
  abort(reason: string): void {
    this.#isAbandoned = true
    this.#listening.abort(reason)
  }

  isOver(): boolean {
    return this.#listening.ending() !== null
  }

  isAttached(): boolean {
    return this.#link !== null
  }

  /** Whether work runs, or frames wait for the client. */
  isBusy(): boolean {
    return this.#link !== null && (!this.isOver() || this.#outbox.pendingBytes() > 0)
  }

  /** Whether it has been over for as long as its last frames are kept. */
  isExpired(): boolean {
    return this.isOver() && performance.now() - this.#endedAt >= this.#settings.resumeMs
  }

  /** What waits for its client to read it. */
  unreadBytes(): number {
    return this.#outbox.pendingBytes()
  }

  /** Characters that are kept for a client that comes back. */
  keptChars(): number {
    return this.#outbox.logChars()
  }

  #attach(link: Link, lastSeq: number) {
    this.#link = link
    this.#audio.attach(link.wire)
    return this.#outbox.attach(link.wire, lastSeq)
  }

  #detach(): void {
    this.#link = null
    this.#audio.detach()
    this.#outbox.detach()
  }

  #supersede(): void {
    const link = this.#link
    if (link === null) return
    this.#detach()
    const error = new SessionError('session_taken_over', 'Another connection goes on with this.')
    link.supersede(renderFrame(renderSessionError(error, null), this.#outbox.takeSeq()), error)
  }

  #close({ closeCode, reason }: Ending): void {
    this.#outbox.finish(() => this.#link?.finish(closeCode, reason))
  }

  #readerIsFull(): boolean {
    return this.#link !== null && this.#outbox.pendingBytes() > this.#settings.readerBytesMax
  }

  #judge(verdict: Verdict): void {
    switch (verdict) {
      case 'client_lost':
        this.abort(verdict)
        break
      case 'idle_timeout':
      case 'max_session':
        this.#listening.endInput(verdictFault(verdict))
        break
      case 'slow_consumer':
        this.#listening.fail(verdictFault(verdict))
        break
      case 'finalize_timeout':
        this.#listening.failInTime(this.#isDraining ? draining() : verdictFault(verdict))
    }
  }

  #ping(): void {
    if (!this.#audio.isPaused() || performance.now() - this.#pingedAt < pingMs) return
    this.#pingedAt = performance.now()
    this.#link?.wire.ping()
  }
}
