import { isRecord, parseJson } from '#lib/json.ts'
import { type Peer, type PeerConnection, type PeerScript, startPeer } from './peer.ts'

/**
 * A server with Vosk's exact protocol: an unanswered configuration, then one reply per frame of audio.
 * It recognises an utterance of `utteranceWords` words in every `utteranceWords * wordMs` of any audio:
 * "u1w1 u1w2 …", then "u2w1 …".
 */
export type VoskPeer = Peer & {
  /** What one connection received. */
  received(index?: number): VoskReceived
}

type VoskReceived = {
  readonly config: { readonly [key: string]: unknown } | null
  /** The lengths of the frames, in bytes. */
  readonly frames: readonly number[]
  readonly audioMs: number
  readonly repliesSent: number
  /** A protocol violation, at which the real server closes with 1011. */
  readonly fault: string | null
}

export type VoskScript = VoskFaults & {
  readonly replyDelayMs?: number
  /** Only this many first connections have the faults. */
  readonly faultyConnections?: number
  readonly utteranceWords?: number
  readonly wordMs?: number
  /** Whether every text is empty. */
  readonly deaf?: boolean
  /** Replies in the format of `max_alternatives`. */
  readonly alternatives?: boolean
  /** Whether times restart at a reset; current servers count from the first sample. */
  readonly timesRestart?: boolean
} & Pick<PeerScript, 'refuse' | 'silent' | 'upgradeDelayMs'>

/** Frames are counted from 1. */
type VoskFaults = {
  /** From this frame on nothing is answered. */
  readonly stallAfterFrames?: number
  /** At this frame the connection is lost without a close frame. */
  readonly crashAfterFrames?: number
  /** At this frame it closes with the code and reason of `close`. */
  readonly closeAfterFrames?: number
  readonly close?: { readonly code: number; readonly reason: string }
  /** From this frame on nothing is read. */
  readonly stopReadingAfterFrames?: number
  /** This frame is answered with invalid JSON. */
  readonly garbageAtFrame?: number
  /** This frame is answered with binary. */
  readonly binaryAtFrame?: number
  /** This frame is answered with a text of this length. */
  readonly oversizeAtFrame?: { readonly frame: number; readonly chars: number }
}

type Recogniser = {
  script: VoskScript
  faults: VoskFaults
  config: { [key: string]: unknown } | null
  frames: number[]
  sampleRateHz: number
  samples: number
  repliesSent: number
  fault: string | null
  utterance: number
  utteranceStart: number
  /** The origin of times. */
  timesFrom: number
  work: Promise<void>
}

const rateWithoutConfig = 8_000

export function startVoskPeer(script: VoskScript = {}): VoskPeer {
  const recognisers = new Map<PeerConnection, Recogniser>()
  const receive = (connection: PeerConnection, message: string | Buffer) => {
    const recogniser = recognisers.get(connection)
    if (recogniser === undefined) return
    // Sequentially, as the server awaits each reply before it reads on.
    recogniser.work = recogniser.work.then(() => onMessage(connection, recogniser, message))
  }
  const peer = startPeer({
    ...script,
    opened(connection) {
      const isFaulty = recognisers.size < (script.faultyConnections ?? Number.POSITIVE_INFINITY)
      recognisers.set(connection, createRecogniser(script, isFaulty ? script : {}))
    },
    text: receive,
    binary: receive,
  })
  return {
    ...peer,
    received(index = 0) {
      const connection = peer.connections[index]
      const recogniser = connection && recognisers.get(connection)
      if (recogniser === undefined) throw new Error(`no connection ${index}`)
      return { ...recogniser, audioMs: audioMsOf(recogniser) }
    },
  }
}

function createRecogniser(script: VoskScript, faults: VoskFaults): Recogniser {
  return {
    script,
    faults,
    config: null,
    frames: [],
    sampleRateHz: rateWithoutConfig,
    samples: 0,
    repliesSent: 0,
    fault: null,
    utterance: 1,
    utteranceStart: 0,
    timesFrom: 0,
    work: Promise.resolve(),
  }
}

async function onMessage(
  connection: PeerConnection,
  recogniser: Recogniser,
  message: string | Buffer,
): Promise<void> {
  if (connection.closed !== null || recogniser.fault !== null) return
  if (typeof message !== 'string') return answerAudio(connection, recogniser, message)
  if (message.includes('config')) return configure(connection, recogniser, message)
  if (message !== '{"eof" : 1}' && message !== '{"reset" : 1}') {
    return refuse(connection, recogniser, `a string was fed as audio: ${message}`)
  }
  if (recogniser.script.replyDelayMs) await Bun.sleep(recogniser.script.replyDelayMs)
  if (isStalled(recogniser)) return
  reply(connection, recogniser, finalOf(recogniser))
  if (message === '{"eof" : 1}') return connection.close(1000)
  if (recogniser.script.timesRestart === true) recogniser.timesFrom = audioMsOf(recogniser)
}

function configure(connection: PeerConnection, recogniser: Recogniser, message: string): void {
  const parsed = parseJson(message)
  const config = isRecord(parsed) ? parsed['config'] : undefined
  if (isRecord(config)) {
    recogniser.config = config
    recogniser.sampleRateHz = Number(config['sample_rate'] ?? rateWithoutConfig)
  } else {
    refuse(connection, recogniser, `no configuration: ${message}`)
  }
}

async function answerAudio(
  connection: PeerConnection,
  recogniser: Recogniser,
  bytes: Buffer,
): Promise<void> {
  const { script, faults, frames } = recogniser
  if (recogniser.config === null) return refuse(connection, recogniser, 'audio before the config')
  if (bytes.length === 0 || bytes.length % 2 === 1) {
    return refuse(connection, recogniser, `a frame of ${bytes.length} bytes`)
  }
  frames.push(bytes.length)
  recogniser.samples += bytes.length / 2
  if (script.replyDelayMs) await Bun.sleep(script.replyDelayMs)
  if (frames.length === faults.crashAfterFrames) return connection.vanish()
  if (frames.length === faults.closeAfterFrames) {
    return connection.close(faults.close?.code, faults.close?.reason)
  }
  if (frames.length === faults.stopReadingAfterFrames) connection.stopReading()
  if (isStalled(recogniser)) return
  const isOver = wordsSaid(recogniser) >= wordsPerUtterance(recogniser)
  const value = isOver ? finalOf(recogniser) : partialOf(recogniser)
  if (frames.length === faults.garbageAtFrame) return connection.sendRaw('{"partial" : "u1')
  if (frames.length === faults.binaryAtFrame) return connection.sendRaw(new Uint8Array(4))
  if (frames.length === faults.oversizeAtFrame?.frame) {
    return reply(connection, recogniser, { partial: 'u'.repeat(faults.oversizeAtFrame.chars) })
  }
  reply(connection, recogniser, value)
}

function isStalled({ faults, frames }: Recogniser): boolean {
  return frames.length >= (faults.stallAfterFrames ?? Number.POSITIVE_INFINITY)
}

function reply(connection: PeerConnection, recogniser: Recogniser, value: object): void {
  recogniser.repliesSent += 1
  // The real server's JSON contains whitespace.
  connection.sendRaw(JSON.stringify(value, null, 2))
}

function refuse(connection: PeerConnection, recogniser: Recogniser, fault: string): void {
  recogniser.fault = fault
  connection.close(1011, 'internal error')
}

function audioMsOf({ samples, sampleRateHz }: Recogniser): number {
  return (samples / sampleRateHz) * 1000
}

function wordsPerUtterance({ script }: Recogniser): number {
  return script.utteranceWords ?? 5
}

function wordsSaid(recogniser: Recogniser): number {
  const saidMs = audioMsOf(recogniser) - recogniser.utteranceStart
  const words = Math.floor(saidMs / (recogniser.script.wordMs ?? 200))
  return Math.min(words, wordsPerUtterance(recogniser))
}

function partialOf(recogniser: Recogniser): object {
  return { partial: textOf(recogniser) }
}

function textOf(recogniser: Recogniser): string {
  return wordsOf(recogniser)
    .map(({ word }) => word)
    .join(' ')
}

function wordsOf(recogniser: Recogniser) {
  if (recogniser.script.deaf === true) return []
  const wordMs = recogniser.script.wordMs ?? 200
  const from = recogniser.utteranceStart - recogniser.timesFrom
  return Array.from({ length: wordsSaid(recogniser) }, (_, at) => ({
    conf: 0.9,
    end: (from + (at + 1) * wordMs) / 1000,
    start: (from + at * wordMs) / 1000,
    word: `u${recogniser.utterance}w${at + 1}`,
  }))
}

/** The words since the previous final; starts the next utterance. */
function finalOf(recogniser: Recogniser): object {
  const words = wordsOf(recogniser)
  const text = textOf(recogniser)
  if (words.length > 0) recogniser.utterance += 1
  recogniser.utteranceStart = audioMsOf(recogniser)
  if (recogniser.script.alternatives === true) {
    const result = words.map(({ conf: _, ...word }) => word)
    return { alternatives: [{ confidence: 217.4, ...(text === '' ? {} : { result }), text }] }
  }
  return text === '' ? { text } : { result: words, text }
}
