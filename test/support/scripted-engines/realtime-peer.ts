import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { createPieces } from './loudness.ts'
import { type Peer, type PeerConnection, type PeerScript, startPeer } from './peer.ts'

/**
 * A server with OpenAI's exact realtime transcription protocol, GA or beta. It detects turns in loud
 * audio followed by silence and transcribes the n-th one as "item n", in two deltas.
 */
export type RealtimePeer = Peer & { received(index?: number): RealtimeReceived }

type RealtimeReceived = {
  readonly session: JsonObject | null
  /** Decoded appends, in bytes. */
  readonly appends: readonly number[]
  readonly commits: number
  /** Commits refused because of too little audio. */
  readonly emptyCommits: number
  readonly fault: string | null
}

export type RealtimeScript = {
  readonly dialect?: 'ga' | 'beta'
  readonly key?: string
  /** Its model does not support turn detection. */
  readonly refusesTurns?: boolean
  /** Never answers the configuration. */
  readonly neverReady?: boolean
  /** Items are announced but transcribed by the test. */
  readonly manual?: boolean
  /** Commits are answered by the test. */
  readonly answersCommits?: boolean
  readonly sessionError?: JsonObject
} & Pick<PeerScript, 'refuse' | 'silent' | 'upgradeDelayMs'>

type RealtimeState = {
  script: RealtimeScript
  session: JsonObject | null
  pieces: ReturnType<typeof createPieces>
  appends: number[]
  commits: number
  emptyCommits: number
  fault: string | null
  silenceMs: number | null
  audioMs: number
  bufferFromMs: number
  items: number
  openItem: string | null
  lastLoudMs: number
}

const rateHz = 24_000
const commitMsMin = 100

export function startRealtimePeer(script: RealtimeScript = {}): RealtimePeer {
  const states = new Map<PeerConnection, RealtimeState>()
  const peer = startPeer({
    ...script,
    refusal({ url, headers }) {
      if (url.pathname !== '/v1/realtime') return 404
      const isBeta = headers.get('openai-beta') === 'realtime=v1'
      if (isBeta !== (script.dialect === 'beta')) return 400
      const isKnown = headers.get('authorization') === `Bearer ${script.key}`
      return script.key === undefined || isKnown ? null : 401
    },
    opened(connection) {
      states.set(connection, createState(script))
      connection.send({ type: 'session.created', session: { id: 'sess_1' } })
    },
    text(connection, text) {
      const state = states.get(connection)
      if (state !== undefined) take(connection, state, asRecord(parseJson(text)))
    },
    binary(connection) {
      const state = states.get(connection)
      if (state !== undefined) state.fault = 'binary'
      connection.close(1003, 'only text is understood')
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

function createState(script: RealtimeScript): RealtimeState {
  return {
    script,
    session: null,
    pieces: createPieces(rateHz),
    appends: [],
    commits: 0,
    emptyCommits: 0,
    fault: null,
    silenceMs: null,
    audioMs: 0,
    bufferFromMs: 0,
    items: 0,
    openItem: null,
    lastLoudMs: 0,
  }
}

function take(connection: PeerConnection, state: RealtimeState, frame: JsonObject): void {
  const isBeta = state.script.dialect === 'beta'
  switch (frame['type']) {
    case isBeta ? 'transcription_session.update' : 'session.update':
      connection.send(configure(state, asRecord(frame['session'])))
      break
    case 'input_audio_buffer.append':
      append(connection, state, String(frame['audio']))
      break
    case 'input_audio_buffer.commit':
      if (state.script.answersCommits ?? true) commit(connection, state)
      break
    default:
      state.fault = `unknown: ${frame['type']}`
      connection.send(errorOf('invalid_value', `Invalid value: ${frame['type']}`, 'type'))
  }
}

/** The response to a configuration. */
function configure(state: RealtimeState, session: JsonObject): JsonObject {
  const { script } = state
  const isBeta = script.dialect === 'beta'
  const input = asRecord(asRecord(session['audio'])['input'])
  const turns = isBeta ? session['turn_detection'] : input['turn_detection']
  const rate = asRecord(input['format'])['rate']
  if (script.sessionError !== undefined) return script.sessionError
  if (script.neverReady === true) return { type: 'rate_limits.updated' }
  if (!isBeta && rate !== rateHz) {
    return errorOf('invalid_value', 'rate', 'session.audio.input.format.rate')
  }
  if (script.refusesTurns === true && turns !== null) {
    const param = 'session.audio.input.turn_detection'
    return errorOf('invalid_value', 'Turn detection is not supported', param)
  }
  state.silenceMs = turns === null ? null : Number(asRecord(turns)['silence_duration_ms'])
  state.session = session
  return { type: isBeta ? 'transcription_session.updated' : 'session.updated', session }
}

function append(connection: PeerConnection, state: RealtimeState, audio: string): void {
  const bytes = Buffer.from(audio, 'base64')
  if (bytes.length === 0 || bytes.length % 2 === 1 || bytes.toString('base64') !== audio) {
    state.fault = 'audio'
    connection.send(errorOf('invalid_value', 'Invalid audio', 'audio'))
  }
  state.appends.push(bytes.length)
  for (const { endMs, isLoud } of state.pieces.push(bytes)) {
    state.audioMs = endMs
    if (state.silenceMs !== null) listen(connection, state, isLoud)
  }
}

function listen(connection: PeerConnection, state: RealtimeState, isLoud: boolean): void {
  const { audioMs, silenceMs } = state
  if (isLoud) state.lastLoudMs = audioMs
  if (isLoud && state.openItem === null) {
    state.openItem = nextItem(state)
    const started = { audio_start_ms: audioMs - 10, item_id: state.openItem }
    connection.send({ type: 'input_audio_buffer.speech_started', ...started })
  }
  const quietMs = audioMs - state.lastLoudMs
  const isOver = quietMs >= (silenceMs ?? Number.POSITIVE_INFINITY)
  if (state.openItem === null || !isOver) return
  const stopped = { audio_end_ms: state.lastLoudMs, item_id: state.openItem }
  connection.send({ type: 'input_audio_buffer.speech_stopped', ...stopped })
  closeItem(connection, state)
}

function commit(connection: PeerConnection, state: RealtimeState): void {
  state.commits += 1
  if (state.audioMs - state.bufferFromMs >= commitMsMin) {
    closeItem(connection, state)
  } else {
    state.emptyCommits += 1
    const message = 'Error committing input audio buffer: buffer too small.'
    connection.send(errorOf('input_audio_buffer_commit_empty', message, null))
  }
}

function nextItem(state: RealtimeState): string {
  state.items += 1
  return `item_${state.items}`
}

function closeItem(connection: PeerConnection, state: RealtimeState): void {
  const item_id = state.openItem ?? nextItem(state)
  const number = Number(item_id.slice('item_'.length))
  const previous_item_id = number === 1 ? null : `item_${number - 1}`
  state.openItem = null
  state.bufferFromMs = state.audioMs
  connection.send({ type: 'input_audio_buffer.committed', item_id, previous_item_id })
  if (state.script.manual === true) return
  connection.send(deltaOf(number, 'item'))
  connection.send(deltaOf(number, ` ${number}`))
  connection.send(completedOf(number, `item ${number}`))
}

export function deltaOf(number: number, delta: string): JsonObject {
  return {
    type: 'conversation.item.input_audio_transcription.delta',
    item_id: `item_${number}`,
    content_index: 0,
    delta,
  }
}

export function completedOf(number: number, transcript: string): JsonObject {
  return {
    type: 'conversation.item.input_audio_transcription.completed',
    item_id: `item_${number}`,
    content_index: 0,
    transcript,
    usage: { type: 'duration', seconds: 1 },
  }
}

export function errorOf(code: string, message: string, param: string | null): JsonObject {
  const type = 'invalid_request_error'
  return {
    type: 'error',
    event_id: 'event_1',
    error: { type, code, message, param, event_id: null },
  }
}
