import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { createPieces } from './loudness.ts'
import { type Peer, type PeerConnection, type PeerScript, startPeer } from './peer.ts'

/**
 * A server with vLLM's exact realtime protocol: a commit starts a generation, a final commit ends its
 * audio, and audio until `done` is discarded. It recognises a word per 200 ms of loud audio, such as
 * "g2w3": the third of its second generation.
 */
export type VllmPeer = Peer & { received(index?: number): VllmReceived }

type VllmReceived = {
  readonly model: unknown
  readonly audioMs: number
  /** Audio that the server discarded. */
  readonly lostMs: number
  /** The audio of each generation. */
  readonly generations: readonly number[]
  readonly fault: string | null
}

export type VllmScript = {
  /** The delay from the final commit to `done`. */
  readonly doneMs?: number
  /** The generation of this number fails. */
  readonly failAt?: number
  /** The generation of this number ends by itself after this much audio. */
  readonly endAfterMs?: number
} & Pick<PeerScript, 'refuse' | 'silent'>

type Generating = {
  script: VllmScript
  model: unknown
  isConfigured: boolean
  phase: 'none' | 'fed' | 'closing'
  pieces: ReturnType<typeof createPieces>
  loudMs: number
  words: string[]
  audioMs: number
  lostMs: number
  generations: number[]
  fault: string | null
}

const rateHz = 16_000
const wordMs = 200

export function startVllmPeer(script: VllmScript = {}): VllmPeer {
  const states = new Map<PeerConnection, Generating>()
  const peer = startPeer({
    ...script,
    refusal: ({ url }) => (url.pathname === '/v1/realtime' ? null : 404),
    opened(connection) {
      states.set(connection, createGenerating(script))
      connection.send({ type: 'session.created', id: 'sess-1', created: 0 })
    },
    text(connection, text) {
      const state = states.get(connection)
      if (state !== undefined) take(connection, state, asRecord(parseJson(text)))
    },
    binary(connection) {
      const state = states.get(connection)
      if (state !== undefined) state.fault = 'binary'
      connection.vanish()
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

function createGenerating(script: VllmScript): Generating {
  return {
    script,
    model: undefined,
    isConfigured: false,
    phase: 'none',
    pieces: createPieces(rateHz),
    loudMs: 0,
    words: [],
    audioMs: 0,
    lostMs: 0,
    generations: [],
    fault: null,
  }
}

function take(connection: PeerConnection, state: Generating, frame: JsonObject): void {
  switch (frame['type']) {
    case 'session.update':
      if ('model' in frame) {
        state.model = frame['model']
        state.isConfigured = true
      } else {
        complain(connection, state, { error: "'model'", code: 'processing_error' })
      }
      break
    case 'input_audio_buffer.append':
      append(connection, state, Buffer.from(String(frame['audio']), 'base64'))
      break
    case 'input_audio_buffer.commit':
      commit(connection, state, frame['final'] === true)
      break
    default:
      complain(connection, state, { error: 'Unknown event type', code: 'unknown_event' })
  }
}

function complain(
  connection: PeerConnection,
  state: Generating,
  error: { error: string; code: string },
): void {
  state.fault = error.code
  connection.send({ type: 'error', ...error })
}

function append(connection: PeerConnection, state: Generating, bytes: Buffer): void {
  const ms = (bytes.length / 2 / rateHz) * 1000
  if (bytes.length === 0) {
    return void complain(connection, state, { error: 'Invalid audio data', code: 'invalid_audio' })
  }
  if (state.phase === 'closing') {
    state.lostMs += ms
    return
  }
  if (state.phase === 'none') state.fault = 'audio outside of a generation'
  state.audioMs += ms
  const number = state.generations.length
  state.generations[number - 1] = (state.generations[number - 1] ?? 0) + ms
  for (const { isLoud } of state.pieces.push(bytes)) {
    if (isLoud) recognise(connection, state)
  }
  const { endAfterMs } = state.script
  if (endAfterMs !== undefined && (state.generations[number - 1] ?? 0) >= endAfterMs) {
    finish(connection, state)
  }
}

function recognise(connection: PeerConnection, state: Generating): void {
  state.loudMs += 10
  if (state.loudMs % wordMs !== 0) return
  state.words.push(`g${state.generations.length}w${state.words.length + 1}`)
  const delta = state.words.length === 1 ? state.words[0] : ` ${state.words.at(-1)}`
  connection.send({ type: 'transcription.delta', delta })
}

function commit(connection: PeerConnection, state: Generating, isFinal: boolean): void {
  if (!state.isConfigured) {
    complain(connection, state, { error: 'Model not validated.', code: 'model_not_validated' })
  } else if (isFinal && state.phase === 'fed') {
    state.phase = 'closing'
    setTimeout(() => finish(connection, state), state.script.doneMs ?? 0)
  } else if (!isFinal && state.phase === 'none') {
    state.phase = 'fed'
    state.loudMs = 0
    state.generations.push(0)
  } else {
    state.fault = 'a commit that is ignored'
  }
}

function finish(connection: PeerConnection, state: Generating): void {
  if (connection.closed !== null) return
  const text = state.words.join(' ')
  state.words = []
  state.phase = 'none'
  if (state.generations.length === state.script.failAt) {
    complain(connection, state, { error: 'the engine is dead', code: 'processing_error' })
  } else {
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    connection.send({ type: 'transcription.done', text, usage })
  }
}
