import { expect } from 'bun:test'
import { compileChecker } from '#lib/schema.ts'
import { type ServerFrame, serverFrame } from '#speech/session/server-frames.ts'
import { eventually } from './eventually.ts'
import { openSocket, type SocketClient } from './socket-client.ts'

/** A client of `/v1/stt` whose every frame is checked. */
export type SpeechClient = SocketClient & {
  frames(): ServerFrame[]
  of<T extends ServerFrame['type']>(type: T): Extract<ServerFrame, { type: T }>[]
  /** The first frame of the type behind the first `after` of them. */
  waitFor<T extends ServerFrame['type']>(
    type: T,
    after?: number,
  ): Promise<Extract<ServerFrame, { type: T }>>
  /** Sends the first message and waits for `session_ready`. */
  start(handshake?: object): Promise<Extract<ServerFrame, { type: 'session_ready' }>>
  sendAudio(bytes: Uint8Array): void
  /** Ends the session, and reads its last frame. */
  end(): Promise<Extract<ServerFrame, { type: 'session_end' }>>
  /** The last error frame, and the close code and reason. */
  refusal(): Promise<{ code: string; closeCode: number | null; details: object; param: unknown }>
  finals(): string[]
}

const checker = compileChecker(serverFrame)
const text = 1
const binary = 2

type ClientOptions = {
  readonly query?: string
  readonly token?: string
  readonly headers?: Record<string, string>
  readonly pongs?: boolean
  readonly ca?: string
}

/** 16-bit PCM at 16 kHz, unless the query says otherwise. */
export async function openSpeech(
  port: number,
  { query = 'encoding=pcm_int16&sample_rate_hz=16000', token, ...options }: ClientOptions = {},
): Promise<SpeechClient> {
  const path = `/v1/stt?${query}${token === undefined ? '' : `&token=${token}`}`
  const socket = await openSocket(port, { path, ...options })
  const read: ServerFrame[] = []
  const frames = () => {
    for (const json of socket.texts.slice(read.length)) read.push(readFrame(json, read.at(-1)))
    return read
  }
  const of: SpeechClient['of'] = (type) => frames().filter((frame) => isOf(frame, type))
  const waitFor: SpeechClient['waitFor'] = async (type, after = 0) => {
    await eventually(`${type} comes`, () => of(type).length > after || socket.isClosed())
    const frame = of(type)[after]
    if (frame === undefined) throw new Error(`no ${type}: ${socket.texts.slice(-3).join('\n')}`)
    return frame
  }
  return {
    ...socket,
    frames,
    of,
    waitFor,
    start(handshake = {}) {
      socket.sendFrame(text, JSON.stringify(handshake))
      return waitFor('session_ready')
    },
    sendAudio: (bytes) => socket.sendFrame(binary, bytes),
    end() {
      socket.send({ type: 'session_end' })
      return waitFor('session_end')
    },
    async refusal() {
      const { close_code, error } = await waitFor('error')
      await eventually('it is closed', () => socket.closeCode() !== null || socket.isClosed())
      expect(socket.closeCode()).toBe(close_code)
      const { code, details, param } = error
      return { code, closeCode: socket.closeCode(), details, param }
    },
    finals: () => of('transcript').flatMap(({ is_final, text }) => (is_final ? [text] : [])),
  }
}

/** Validates the form of each frame and that counters only grow. */
function readFrame(json: string, before: ServerFrame | undefined): ServerFrame {
  const frame: unknown = JSON.parse(json)
  if (!checker.check(frame)) {
    throw new Error(`${checker.firstError(frame)?.message} in ${json.slice(0, 300)}`)
  }
  expect(json).toStartWith(`{"type":"${frame.type}","seq":${frame.seq}`)
  expect(frame.seq).toBeGreaterThan(before?.seq ?? 0)
  return frame
}

function isOf<T extends ServerFrame['type']>(
  frame: ServerFrame,
  type: T,
): frame is Extract<ServerFrame, { type: T }> {
  return frame.type === type
}

/** 16-bit samples as a client sends them. */
export function pcmBytes(samples: Int16Array): Uint8Array {
  return new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength)
}
