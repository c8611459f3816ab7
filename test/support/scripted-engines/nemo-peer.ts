import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { createPieces } from './loudness.ts'
import { type Peer, type PeerConnection, type PeerScript, startPeer } from './peer.ts'

/**
 * A server with NeMo-Speech's exact realtime protocol: binary audio, no item ids, and commits that end
 * its stream, after which times restart. It recognises a word per 200 ms of loud audio, such as "s2w3":
 * the third of its second utterance.
 */
export type NemoPeer = Peer & { received(index?: number): NemoReceived }

type NemoReceived = {
  readonly session: JsonObject | null
  readonly frames: readonly number[]
  readonly commits: number
  readonly fault: string | null
}

export type NemoScript = {
  readonly key?: string
  /** Whether the server was started with endpointing. */
  readonly endpointing?: boolean
  /** The maximum audio of one stream, in bytes. */
  readonly bytesMax?: number
} & Pick<PeerScript, 'refuse' | 'silent'>

type Recognising = {
  script: NemoScript
  session: JsonObject | null
  frames: number[]
  bytes: number
  commits: number
  fault: string | null
  utterance: number
  stream: Stream | null
}

type Stream = {
  pieces: ReturnType<typeof createPieces>
  audioMs: number
  loudMs: number
  quietMs: number
  words: { word: string; start: number; end: number; confidence: number }[]
}

const rateHzUsual = 16_000
const wordMs = 200
const itemPrefix = 'conversation.item.input_audio_transcription'

export function startNemoPeer(script: NemoScript = {}): NemoPeer {
  const states = new Map<PeerConnection, Recognising>()
  const peer = startPeer({
    ...script,
    refusal: ({ url }) => (url.pathname === '/v1/realtime' ? null : 404),
    opened(connection) {
      const isKnown = connection.request.headers.get('authorization') === `Bearer ${script.key}`
      if (script.key !== undefined && !isKnown) {
        connection.close(1008, `invalid bearer token: ${script.key}`)
      } else {
        states.set(connection, createRecognising(script))
        const session = { input_audio_format: 'pcm16', sample_rate: rateHzUsual, model: 'm' }
        connection.send({ type: 'session.created', session })
      }
    },
    text(connection, text) {
      const state = states.get(connection)
      if (state !== undefined) take(connection, state, asRecord(parseJson(text)))
    },
    binary(connection, bytes) {
      const state = states.get(connection)
      if (state !== undefined) append(connection, state, bytes)
    },
  })
  return {
    ...peer,
    received(index = 0) {
      const connection = peer.connections[index]
      const state = connection && states.get(connection)
      if (state === undefined) throw new Error(`no connection ${index}`)
      return state
    },
  }
}

function createRecognising(script: NemoScript): Recognising {
  return {
    script,
    session: null,
    frames: [],
    bytes: 0,
    commits: 0,
    fault: null,
    utterance: 1,
    stream: null,
  }
}

function take(connection: PeerConnection, state: Recognising, frame: JsonObject): void {
  switch (frame['type']) {
    case 'session.update':
      if (state.stream === null) {
        state.session = asRecord(frame['session'])
        connection.send({ type: 'session.updated', session: state.session })
      } else {
        complain(connection, state, 'session configuration cannot change after audio starts')
      }
      break
    case 'input_audio_buffer.commit':
      state.commits += 1
      complete(connection, state, streamOf(state))
      state.stream = null
      state.bytes = 0
      connection.send({ type: 'input_audio_buffer.committed' })
      break
    default:
      complain(connection, state, `unsupported realtime event type: ${frame['type']}`)
  }
}

function complain(connection: PeerConnection, state: Recognising, message: string): void {
  state.fault = message
  connection.send({ type: 'error', error: { message, type: 'invalid_request_error' } })
}

function streamOf(state: Recognising): Stream {
  const rateHz = Number(state.session?.['sample_rate'] ?? rateHzUsual)
  state.stream ??= { pieces: createPieces(rateHz), audioMs: 0, loudMs: 0, quietMs: 0, words: [] }
  return state.stream
}

function append(connection: PeerConnection, state: Recognising, bytes: Buffer): void {
  state.frames.push(bytes.length)
  state.bytes += bytes.length
  if (bytes.length % 2 === 1) complain(connection, state, 'PCM16 needs an even number of bytes')
  if (state.bytes > (state.script.bytesMax ?? Number.POSITIVE_INFINITY)) {
    complain(connection, state, 'realtime audio exceeds the configured upload limit')
  }
  const stream = streamOf(state)
  for (const { endMs, isLoud } of stream.pieces.push(bytes)) {
    stream.audioMs = endMs
    stream.quietMs = isLoud ? 0 : stream.quietMs + 10
    if (isLoud) recognise(connection, state, stream)
    const pauseMs = Number(state.session?.['endpointing_ms'] ?? 800)
    const isOver = stream.quietMs >= pauseMs && stream.words.length > 0
    if (state.script.endpointing === true && isOver) complete(connection, state, stream)
  }
}

function recognise(connection: PeerConnection, state: Recognising, stream: Stream): void {
  stream.loudMs += 10
  if (stream.loudMs % wordMs !== 0) return
  const word = `s${state.utterance}w${stream.words.length + 1}`
  const end = stream.audioMs / 1000
  stream.words.push({ word, start: end - wordMs / 1000, end, confidence: 0.8 })
  const delta = stream.words.length === 1 ? word : ` ${word}`
  connection.send({ type: `${itemPrefix}.delta`, delta, audio_processed: end })
}

function complete(connection: PeerConnection, state: Recognising, stream: Stream): void {
  const words = stream.words.splice(0)
  stream.loudMs = 0
  if (words.length > 0) state.utterance += 1
  connection.send({
    type: `${itemPrefix}.completed`,
    transcript: words.map(({ word }) => word).join(' '),
    audio_processed: stream.audioMs / 1000,
    ...(state.session?.['word_timestamps'] === true ? { words } : {}),
  })
}
