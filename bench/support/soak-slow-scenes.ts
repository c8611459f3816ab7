import type { Socket } from 'node:net'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { sendRaw } from '#test/support/raw-client.ts'
import type { Scene, SoakClient } from './soak-client.ts'
import type { Outcome } from './soak-job.ts'
import { below, drawGoodPlan, pick, plainPlan } from './soak-plan.ts'
import { models, question } from './soak-responses.ts'
import {
  frameMs,
  framesOf,
  framesPerUtterance,
  makeSpeech,
  noSpeechFaults,
  SpeechCheck,
} from './speech-plan.ts'

/** Scenes with stalled readers and live speech. */
export const slowScenes: readonly Scene[] = [
  { kind: 'stalled readers', weight: 0.3, play: stopReading },
  { kind: 'speech', weight: 2, play: speak },
]

/** More than all buffers hold together; the upstream sends five times as much. */
const stalledTokens = { tokens: 300, tokenBytes: 40_000 }
const utterancesMax = 4
const sessionMs = 30_000

/** Reader stall timeout configured in the soak. */
export const readerStallMs = 4_000

/** Stops reading for longer than allowed; the stream must be cut off. */
async function stopReading({ job, bearer, random }: SoakClient): Promise<Outcome> {
  const plan = {
    ...drawGoodPlan(random),
    plan: { ...plainPlan({ tokens: 1, tokensPerSecond: 0 }), ...stalledTokens },
  }
  const { path, json } = question('messages', plan, { model: pick(models, random), stream: true })
  const asked = sendRaw({ port: job.port, token: bearer, body: json, path })
  try {
    const status = await pauseAtFirstBytes(asked.socket)
    if (status !== '200') throw new Error(`a long response starts with ${status}`)
    await Bun.sleep(2 * readerStallMs)
    asked.socket.resume()
    const wasWaitedFor = await asked.chunks().then(
      () => true,
      () => false,
    )
    if (wasWaitedFor) throw new Error('a stalled reader was not disconnected')
    return 'failed'
  } finally {
    asked.socket.destroy()
  }
}

/** Returns the status of the response; undefined if there is none. */
function pauseAtFirstBytes(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve('nothing'))
    socket.once('data', (piece: Buffer) => {
      socket.pause()
      resolve(piece.toString('latin1', 'HTTP/1.1 '.length, 'HTTP/1.1 200'.length))
    })
  })
}

const speech = makeSpeech((utterancesMax * (framesPerUtterance * frameMs)) / 1_000)

/** Sends utterances in real time; some clients disconnect. */
async function speak({ job, bearer, number, random }: SoakClient): Promise<Outcome> {
  const faults = noSpeechFaults()
  const check = new SpeechCheck(speech, { session: number, start: number, faults })
  const frames = (1 + below(utterancesMax, random)) * framesPerUtterance
  const leavesAt = random() < 0.2 ? below(frames, random) : frames
  const query = `encoding=pcm_int16&sample_rate_hz=16000&token=${bearer}`
  const socket = new WebSocket(`ws://127.0.0.1:${job.port}/v1/stt?${query}`)
  const closed = Promise.withResolvers<Outcome>()
  const sessionTimer = setTimeout(
    () => closed.reject(new Error('a session does not end')),
    sessionMs,
  )
  const sending = createSender(socket, { frameAt: framesOf(speech, number), frames: leavesAt })
  const isLeaving = leavesAt < frames
  socket.onopen = () => socket.send(JSON.stringify({ options: { flow: 'credit' } }))
  socket.onmessage = ({ data }) => {
    const frame = readFrame(data)
    sending.take(frame)
    if (frame['type'] === 'transcript' && frame['is_final'] === true)
      check.final(String(frame['text']))
    if (frame['type'] === 'session_end') check.end(frames)
    if (frame['type'] === 'error') closed.reject(new Error(JSON.stringify(frame['error'])))
  }
  socket.onclose = ({ code, reason }) => {
    if (isLeaving) closed.resolve('left')
    else if (code === 1000) closed.resolve('whole')
    else closed.reject(new Error(`a session was closed with ${code} ${reason}`))
  }
  try {
    await Promise.race([sending.done, closed.promise])
    if (isLeaving) socket.terminate()
    else socket.send(JSON.stringify({ type: 'session_end' }))
    const outcome = await closed.promise
    if (faults.lost + faults.wrong === 0 || outcome === 'left') return outcome
    throw new Error(faults.samples.join('; '))
  } finally {
    clearTimeout(sessionTimer)
    sending.stop()
    socket.terminate()
  }
}

/** Sends frames in real time within the credit. */
function createSender(
  socket: WebSocket,
  { frameAt, frames }: { frameAt: (frame: number) => Uint8Array; frames: number },
) {
  const done = Promise.withResolvers<void>()
  let [credit, sent, sentBytes, startedMs] = [0, 0, 0, 0]
  const timer = setInterval(() => {
    if (startedMs === 0) return
    const due = Math.min(frames, (performance.now() - startedMs) / frameMs)
    for (; sent < due; sent++) {
      const frame = frameAt(sent)
      if (sentBytes + frame.length > credit) return
      socket.send(frame)
      sentBytes += frame.length
    }
    if (sent >= frames) done.resolve()
  }, frameMs / 2)
  return {
    done: done.promise,
    stop: () => clearInterval(timer),
    take(frame: JsonObject) {
      if (frame['type'] === 'session_ready') {
        credit = Number(Object(frame['flow']).credit_bytes)
        startedMs = performance.now()
      } else if (frame['type'] === 'audio_ack') credit = Number(frame['credit_bytes'])
    },
  }
}

function readFrame(data: unknown): JsonObject {
  const frame = typeof data === 'string' ? parseJson(data) : undefined
  return isRecord(frame) ? frame : {}
}
