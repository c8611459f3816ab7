import { isRecord, parseJson } from '#lib/json.ts'
import { type Peer, type PeerConnection, type PeerScript, startPeer } from './peer.ts'

/**
 * A server that speaks Deepgram's /v1/listen to the letter. It hears utterances of four words of
 * 250 ms each, whatever the audio is, and tells of each second word as an interim result.
 */
export type DeepgramPeer = Peer & { received(index?: number): DeepgramReceived }

type DeepgramReceived = {
  readonly audioMs: number
  readonly frames: readonly number[]
  readonly commands: readonly string[]
}

export type DeepgramScript = {
  /** Refused without it, as with a wrong one. */
  readonly key?: string
  /** Silence after which the session is ended with NET-0001. */
  readonly idleMs?: number
  /** Finals are empty. */
  readonly deaf?: boolean
  /** `Finalize` and audio are taken without a word. */
  readonly mute?: boolean
  /** It closes without the last `Metadata`. */
  readonly abrupt?: boolean
} & Pick<PeerScript, 'refuse' | 'silent' | 'upgradeDelayMs'>

type Listening = {
  audioMs: number
  rateHz: number
  frames: number[]
  commands: string[]
  toldWords: number
  /** Words that finals have told. */
  finalWords: number
  idle: Timer
}

const wordMs = 250
const utteranceWords = 4
const idleMsUsual = 10_000

export function startDeepgramPeer(script: DeepgramScript = {}): DeepgramPeer {
  const listenings = new Map<PeerConnection, Listening>()
  const peer = startPeer({
    ...script,
    refusal: ({ url, headers }) => {
      if (url.pathname !== '/v1/listen') return 404
      if (url.searchParams.get('encoding') !== 'linear16') return 400
      if (!url.searchParams.has('sample_rate')) return 400
      const isKnown = headers.get('authorization') === `Token ${script.key}`
      return script.key === undefined || isKnown ? null : 401
    },
    opened(connection) {
      listenings.set(connection, {
        audioMs: 0,
        rateHz: Number(connection.request.url.searchParams.get('sample_rate')),
        frames: [],
        commands: [],
        toldWords: 0,
        finalWords: 0,
        idle: startIdle(connection, script),
      })
    },
    text(connection, text) {
      const listening = listenings.get(connection)
      if (listening !== undefined) takeCommand(connection, listening, { text, script })
    },
    binary(connection, bytes) {
      const listening = listenings.get(connection)
      if (listening === undefined) return
      restartIdle(connection, listening, script)
      listening.frames.push(bytes.length)
      listening.audioMs += (bytes.length / 2 / listening.rateHz) * 1000
      if (script.mute !== true) tell(connection, listening, script)
    },
  })
  return {
    ...peer,
    received(index = 0) {
      const connection = peer.connections[index]
      const listening = connection && listenings.get(connection)
      if (listening === undefined) throw new Error(`no connection ${index}`)
      return listening
    },
    async stop() {
      for (const { idle } of listenings.values()) clearTimeout(idle)
      await peer.stop()
    },
  }
}

function startIdle(connection: PeerConnection, { idleMs = idleMsUsual }: DeepgramScript): Timer {
  return setTimeout(() => {
    const reason = 'NET-0001: Deepgram did not receive audio data or a text message'
    connection.close(1011, reason)
  }, idleMs)
}

function restartIdle(connection: PeerConnection, listening: Listening, script: DeepgramScript) {
  clearTimeout(listening.idle)
  listening.idle = startIdle(connection, script)
}

function takeCommand(
  connection: PeerConnection,
  listening: Listening,
  { text, script }: { text: string; script: DeepgramScript },
): void {
  const command = parseJson(text)
  const type = isRecord(command) ? command['type'] : undefined
  listening.commands.push(String(type))
  restartIdle(connection, listening, script)
  if (type === 'KeepAlive' || script.mute === true) return
  if (type === 'Finalize') {
    connection.send(resultsOf(listening, script, { isFinal: true, from_finalize: true }))
  } else if (type === 'CloseStream') {
    clearTimeout(listening.idle)
    const isRest = wordsReceived(listening) > listening.finalWords
    if (isRest) connection.send(resultsOf(listening, script, { isFinal: true }))
    if (script.abrupt !== true) connection.send(metadataOf(listening))
    connection.close(1000)
  } else {
    clearTimeout(listening.idle)
    connection.close(1008, 'DATA-0000: the payload cannot be decoded as audio')
  }
}

function tell(connection: PeerConnection, listening: Listening, script: DeepgramScript): void {
  const words = wordsReceived(listening)
  for (; listening.toldWords < words; ) {
    const before = listening.toldWords
    listening.toldWords += 1
    const inUtterance = listening.toldWords - listening.finalWords
    if (before === listening.finalWords && script.deaf !== true) {
      connection.send({ type: 'SpeechStarted', channel: [0], timestamp: (before * wordMs) / 1000 })
    }
    if (inUtterance === utteranceWords) {
      connection.send(resultsOf(listening, script, { isFinal: true, speech_final: true }))
      const last_word_end = (listening.toldWords * wordMs) / 1000
      connection.send({ type: 'UtteranceEnd', channel: [0, 1], last_word_end })
    } else if (inUtterance % 2 === 0) {
      connection.send(resultsOf(listening, script, { isFinal: false }))
    }
  }
}

function wordsReceived({ audioMs }: Listening): number {
  return Math.floor(audioMs / wordMs)
}

/** The words since the final before, up to those already sent or, in a last final, received. */
function resultsOf(
  listening: Listening,
  script: DeepgramScript,
  { isFinal, ...flags }: { isFinal: boolean; speech_final?: boolean; from_finalize?: boolean },
): object {
  const from = listening.finalWords
  const isLast = isFinal && flags.speech_final !== true
  const until = isLast ? wordsReceived(listening) : listening.toldWords
  const start = (from * wordMs) / 1000
  const endMs = isLast ? listening.audioMs : until * wordMs
  if (isFinal) listening.finalWords = until
  listening.toldWords = Math.max(listening.toldWords, until)
  const count = script.deaf === true ? 0 : until - from
  const words = Array.from({ length: count }, (_, at) => ({
    word: `w${from + at + 1}`,
    start: ((from + at) * wordMs) / 1000,
    end: ((from + at + 1) * wordMs) / 1000,
    confidence: 0.75,
    punctuated_word: at === 0 ? `W${from + 1}` : `w${from + at + 1}`,
  }))
  const transcript = words.map(({ punctuated_word }) => punctuated_word).join(' ')
  return {
    type: 'Results',
    channel_index: [0, 1],
    duration: endMs / 1000 - start,
    start,
    is_final: isFinal,
    speech_final: false,
    from_finalize: false,
    ...flags,
    channel: { alternatives: [{ transcript, confidence: count === 0 ? 0 : 0.75, words }] },
    metadata: { request_id: 'r' },
  }
}

function metadataOf({ audioMs }: Listening): object {
  return { type: 'Metadata', request_id: 'r', duration: audioMs / 1000, channels: 1 }
}
