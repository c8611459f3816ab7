import { isRecord, parseJson } from '#lib/json.ts'
import { type Peer, type PeerConnection, type PeerScript, startPeer } from './peer.ts'

/**
 * A server with Deepgram's exact /v1/listen protocol. It recognises utterances of four words of 250 ms
 * each in any audio, with an interim result for each second word.
 */
export type DeepgramPeer = Peer & { received(index?: number): DeepgramReceived }

type DeepgramReceived = {
  readonly audioMs: number
  readonly frames: readonly number[]
  readonly commands: readonly string[]
}

export type DeepgramScript = {
  /** Requests with another or no credential are refused. */
  readonly key?: string
  /** Silence after which the session is ended with NET-0001. */
  readonly idleMs?: number
  /** Finals are empty. */
  readonly deaf?: boolean
  /** `Finalize` and audio are not answered. */
  readonly mute?: boolean
  /**
   * It behaves as WhisperLiveKit 0.2.26: sends `Metadata` at the start, refuses `Finalize`, checks
   * `utterance_end_ms`, and needs so much more audio before it returns a text.
   */
  readonly lookaheadMs?: number
  /** It closes without the last `Metadata`. */
  readonly abrupt?: boolean
} & Pick<PeerScript, 'refuse' | 'silent' | 'upgradeDelayMs'>

type DeepgramSession = {
  audioMs: number
  rateHz: number
  frames: number[]
  commands: string[]
  sentWords: number
  /** Words sent in finals. */
  finalWords: number
  idle: Timer
}

const wordMs = 250
const utteranceWords = 4
const idleMsUsual = 10_000

export function startDeepgramPeer(script: DeepgramScript = {}): DeepgramPeer {
  const sessions = new Map<PeerConnection, DeepgramSession>()
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
      sessions.set(connection, {
        audioMs: 0,
        rateHz: Number(connection.request.url.searchParams.get('sample_rate')),
        frames: [],
        commands: [],
        sentWords: 0,
        finalWords: 0,
        idle: startIdle(connection, script),
      })
      if (script.lookaheadMs === undefined) return
      connection.send({ type: 'Metadata', request_id: 'r', duration: 0, channels: 1 })
      const { searchParams } = connection.request.url
      const utteranceEndMs = Number(searchParams.get('utterance_end_ms'))
      if (utteranceEndMs >= 1_000 && utteranceEndMs <= 5_000) return
      refuse(connection, 'utterance_end_ms must be an integer between 1000 and 5000.')
    },
    text(connection, text) {
      const session = sessions.get(connection)
      if (session !== undefined) takeCommand(connection, session, { text, script })
    },
    binary(connection, bytes) {
      const session = sessions.get(connection)
      if (session === undefined) return
      restartIdle(connection, session, script)
      session.frames.push(bytes.length)
      session.audioMs += (bytes.length / 2 / session.rateHz) * 1000
      if (script.mute !== true) tell(connection, session, script)
    },
  })
  return {
    ...peer,
    received(index = 0) {
      const connection = peer.connections[index]
      const session = connection && sessions.get(connection)
      if (session === undefined) throw new Error(`no connection ${index}`)
      return session
    },
    async stop() {
      for (const { idle } of sessions.values()) clearTimeout(idle)
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

function restartIdle(connection: PeerConnection, session: DeepgramSession, script: DeepgramScript) {
  clearTimeout(session.idle)
  session.idle = startIdle(connection, script)
}

function takeCommand(
  connection: PeerConnection,
  session: DeepgramSession,
  { text, script }: { text: string; script: DeepgramScript },
): void {
  const command = parseJson(text)
  const type = isRecord(command) ? command['type'] : undefined
  session.commands.push(String(type))
  restartIdle(connection, session, script)
  if (type === 'KeepAlive' || script.mute === true) return
  if (type === 'Finalize' && script.lookaheadMs !== undefined) {
    const message = 'Finalize is not supported by WhisperLiveKit because its ASR flush is terminal.'
    refuse(connection, message)
  } else if (type === 'Finalize') {
    connection.send(resultsOf(session, script, { isFinal: true, from_finalize: true }))
  } else if (type === 'CloseStream') {
    clearTimeout(session.idle)
    const isRest = wordsReceived(session) > session.finalWords
    if (isRest) connection.send(resultsOf(session, script, { isFinal: true }))
    if (script.abrupt !== true) connection.send(metadataOf(session))
    connection.close(1000)
  } else {
    clearTimeout(session.idle)
    connection.close(1008, 'DATA-0000: the payload cannot be decoded as audio')
  }
}

function refuse(connection: PeerConnection, description: string): void {
  connection.send({ type: 'Error', description, request_id: 'r' })
  connection.close(4400, 'invalid Deepgram session')
}

function tell(connection: PeerConnection, session: DeepgramSession, script: DeepgramScript): void {
  const words = wordsReceived(session, script.lookaheadMs)
  for (; session.sentWords < words; ) {
    const before = session.sentWords
    session.sentWords += 1
    const inUtterance = session.sentWords - session.finalWords
    if (before === session.finalWords && script.deaf !== true) {
      connection.send({ type: 'SpeechStarted', channel: [0], timestamp: (before * wordMs) / 1000 })
    }
    if (inUtterance === utteranceWords) {
      connection.send(resultsOf(session, script, { isFinal: true, speech_final: true }))
      const last_word_end = (session.sentWords * wordMs) / 1000
      connection.send({ type: 'UtteranceEnd', channel: [0, 1], last_word_end })
    } else if (inUtterance % 2 === 0) {
      connection.send(resultsOf(session, script, { isFinal: false }))
    }
  }
}

function wordsReceived({ audioMs }: DeepgramSession, lookaheadMs = 0): number {
  return Math.max(0, Math.floor((audioMs - lookaheadMs) / wordMs))
}

/** The words since the previous final, up to those sent or, in a last final, received. */
function resultsOf(
  session: DeepgramSession,
  script: DeepgramScript,
  { isFinal, ...flags }: { isFinal: boolean; speech_final?: boolean; from_finalize?: boolean },
): object {
  const from = session.finalWords
  const isLast = isFinal && flags.speech_final !== true
  const until = isLast ? wordsReceived(session) : session.sentWords
  const start = (from * wordMs) / 1000
  const endMs = isLast ? session.audioMs : until * wordMs
  if (isFinal) session.finalWords = until
  session.sentWords = Math.max(session.sentWords, until)
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

function metadataOf({ audioMs }: DeepgramSession): object {
  return { type: 'Metadata', request_id: 'r', duration: audioMs / 1000, channels: 1 }
}
