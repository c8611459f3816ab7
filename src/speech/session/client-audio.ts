import type { Config } from '#config/schema.ts'
import type { AudioFormat } from '#speech/decoders/decoder.ts'
import type { RecognitionProgress } from '#speech/recognition/recognition.ts'
import { createCredit } from './credit.ts'
import { createInbox, type Inbox } from './inbox.ts'
import { type AudioBudget, createIntake } from './intake.ts'
import type { Wire } from './outbox.ts'
import { whole } from './render-frames.ts'
import type { UnsentFrame } from './server-frames.ts'
import { SessionError } from './session-error.ts'

/** The audio of one client on its way in: what is kept of it, and how much more may come. */
export type ClientAudio = {
  readonly inbox: Inbox
  attach(wire: Wire): void
  detach(): void
  /** While it is held, the client is not read. */
  hold(isHeld: boolean): void
  isPaused(): boolean
  /** Throws a `SessionError` (`flow_violation`) for a client that ignores its credit. */
  receive(bytes: Uint8Array): void
  /** Counts what comes too late. */
  discard(bytes: Uint8Array): void
  checkFull(): void
  checkRoom(): void
  /** The next acknowledgement, if the client asked for them and one is due. */
  acknowledge(read: () => RecognitionProgress): UnsentFrame | null
  /** What the client may have sent in all. */
  creditBytes(): number
  /** How long what waits will sound, as far as it can be told. */
  queuedMs(decodedMs: number): number
  counts(): AudioCounts
  /** Drops what waits. The socket stays as it is: whoever closes it reads it to its end. */
  close(): void
}

type AudioCounts = {
  readonly receivedBytes: number
  readonly takenBytes: number
  readonly pauses: number
  readonly pausedMs: number
}

export function createClientAudio(options: {
  readonly format: AudioFormat
  readonly usesCredit: boolean
  readonly settings: Pick<Config['speech'], 'queueBytesMax'>
  readonly budget: AudioBudget
  readonly readerIsFull: () => boolean
}): ClientAudio {
  const { budget, format, settings, usesCredit } = options
  const keepsPackets = format.container === 'raw'
  const inbox = createInbox({ keepsPackets, stored: budget.change })
  const intake = createIntake({ queueBytesMax: settings.queueBytesMax, budget })
  const credit = createCredit()
  let receivedBytes = 0
  const flow = () => ({ takenBytes: inbox.takenBytes(), windowBytes: intake.windowBytes() })
  const fill = () => ({
    storedBytes: inbox.storedBytes(),
    readerIsFull: options.readerIsFull(),
  })

  return {
    inbox,
    attach: intake.attach,
    detach: intake.detach,
    hold: intake.hold,
    isPaused: intake.isPaused,
    receive(bytes) {
      receivedBytes += bytes.length
      if (usesCredit && credit.isOverdrawn(receivedBytes)) throw overdrawn()
      inbox.push(bytes)
    },
    discard(bytes) {
      receivedBytes += bytes.length
    },
    checkFull: () => intake.checkFull(fill()),
    checkRoom: () => intake.checkRoom(fill()),
    acknowledge(read) {
      if (!usesCredit) return null
      const progress = read()
      credit.progressed(progress.processedMs)
      if (!credit.isDue(flow())) return null
      return {
        type: 'audio_ack',
        received_bytes: receivedBytes,
        credit_bytes: credit.grant(flow()),
        received_ms: whole(progress.receivedMs),
        processed_ms: whole(progress.processedMs),
        final_ms: whole(progress.finalMs),
      }
    },
    creditBytes: () => credit.grant(flow()),
    queuedMs: (decodedMs) =>
      inbox.storedBytes() * (pcmMsPerByte(format) ?? decodedMs / Math.max(1, inbox.takenBytes())),
    counts: () => ({
      receivedBytes,
      takenBytes: inbox.takenBytes(),
      pauses: intake.pauses(),
      pausedMs: intake.pausedMs(),
    }),
    close() {
      inbox.clear()
      intake.detach()
      intake.hold(false)
    },
  }
}

function pcmMsPerByte({ channels, encoding, sampleRateHz }: AudioFormat): number | null {
  if (sampleRateHz === null) return null
  const sampleBytes = encoding === 'pcm_float32' ? 4 : 2
  return 1000 / (sampleRateHz * sampleBytes * channels)
}

function overdrawn(): SessionError {
  const sentence = 'More audio came than the credit that was given.'
  return new SessionError('flow_violation', sentence)
}
