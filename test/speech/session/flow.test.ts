import { describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { createGatedEngine, type GatedEngine } from '#test/support/gated-engine.ts'
import { passTime } from '#test/support/passing-time.ts'
import { createScriptedEngine, type ScriptedEngine } from '#test/support/scripted-engine.ts'
import { openSpeech, type SpeechClient } from '#test/support/speech-client.ts'
import type { SpeechServer, SpeechServerOptions } from '#test/support/speech-server.ts'
import { serveSpeech } from './served-speech.ts'

/** Clients that send more than the engine processes. */

const queueBytesMax = 65_536
/** What Bun may have read before a pause takes effect. */
const readBytesMax = 524_288

let inner: ScriptedEngine
let engine: GatedEngine
const speechServers = serveSpeech()

function start(speech: SpeechServerOptions['speech'] = {}): SpeechServer {
  inner = createScriptedEngine({ takeMs: 60_000 })
  engine = createGatedEngine(inner)
  return speechServers.start({ engines: [engine], speech })
}

/** Sends silence without regard to backpressure. */
function flood(client: SpeechClient, bytes: number, frameBytes = 3_200): void {
  const frame = new Uint8Array(frameBytes)
  for (let sent = 0; sent < bytes; sent += frameBytes) {
    client.sendAudio(frame.subarray(0, Math.min(frameBytes, bytes - sent)))
  }
}

/** Waits until the client is paused. */
async function isHeldBack(server: SpeechServer): Promise<void> {
  await eventually('the queue is full', () => server.sessions.metrics().queuedBytes > queueBytesMax)
}

describe('a client that floods a stalled engine', () => {
  test('uses at most its queue and one read, without loss', async () => {
    const server = start()
    const client = await openSpeech(server.port, { token: speechServers.token })
    await client.start()
    const bytes = 8_000_000
    flood(client, bytes)
    await isHeldBack(server)
    engine.release()
    const { stats } = await client.end()
    expect(server.sessions.metrics().queuedBytesPeak).toBeLessThanOrEqual(
      queueBytesMax + readBytesMax + 3_200,
    )
    expect(inner.inFlightMsMax()).toBeLessThanOrEqual(server.settings.inFlightMsMax + 200)
    expect(stats).toMatchObject({
      received_bytes: bytes,
      discarded_bytes: 0,
      audio_ms: bytes / 32,
      untranscribed_ms: 0,
    })
    expect(stats.pauses).toBeGreaterThan(0)
    expect(server.sessions.metrics().queuedBytes).toBe(0)
  })

  test('does not affect others until the total budget is used up', async () => {
    const server = start({ queueTotalBytesMax: 4 * queueBytesMax })
    const clients: SpeechClient[] = []
    for (let count = 0; count < 4; count++) {
      const client = await openSpeech(server.port, { token: speechServers.token })
      await client.start()
      clients.push(client)
    }
    const late = await openSpeech(server.port, { token: speechServers.token })
    for (const client of clients) flood(client, 1_000_000)
    await eventually(
      'the budget is used up',
      () => server.sessions.metrics().queuedBytes > 4 * queueBytesMax,
    )
    late.send({})
    expect(await late.refusal()).toMatchObject({
      code: 'capacity',
      closeCode: 1013,
      details: { limit: 'audio', retry_after_ms: 1_000 },
    })
    expect(server.sessions.metrics().queuedBytesPeak).toBeLessThanOrEqual(
      4 * (queueBytesMax + readBytesMax + 3_200),
    )
    engine.release()
    for (const client of clients) expect((await client.end()).stats.received_bytes).toBe(1_000_000)
  })

  test('and disconnects is detected although it is paused', async () => {
    const server = start()
    const client = await openSpeech(server.port, { token: speechServers.token })
    await client.start()
    flood(client, 8_000_000)
    await isHeldBack(server)
    client.socket.destroy()
    await eventually('its socket is closed', () => server.sessions.metrics().connections === 0)
    passTime(server.settings.resumeMs)
    await eventually('its session has ended', () => server.sessions.metrics().sessions === 0)
    expect(server.sessions.metrics().queuedBytes).toBe(0)
    expect(inner.running()).toBe(0)
    expect(server.logLines.join()).toContain('"session_end":"client_lost"')
  })

  test('may only send a limited number of finalize requests', async () => {
    const client = await openSpeech(start().port, { token: speechServers.token })
    await client.start()
    for (let count = 0; count < 40; count++) client.send({ type: 'finalize', id: `f${count}` })
    expect(await client.refusal()).toMatchObject({ code: 'flow_violation', closeCode: 1008 })
  })
})

describe('a client with credit', () => {
  const handshake = { options: { flow: 'credit' } }

  /** Sends `bytes` within the credit, in frames of up to `frameBytes`. */
  async function obey(client: SpeechClient, bytes: number, frameBytes: number): Promise<void> {
    const frame = new Uint8Array(frameBytes)
    const credit = () =>
      client.of('audio_ack').at(-1)?.credit_bytes ??
      client.of('session_ready')[0]?.flow.credit_bytes ??
      0
    for (let sent = 0; sent < bytes; ) {
      await eventually('there is credit', () => credit() > sent)
      const next = Math.min(frameBytes, credit() - sent, bytes - sent)
      client.sendAudio(frame.subarray(0, next))
      sent += next
    }
  }

  test('that complies is never paused and queues at most its window', async () => {
    const server = start()
    const client = await openSpeech(server.port, { token: speechServers.token })
    const { flow } = await client.start(handshake)
    expect(flow).toEqual({ mode: 'credit', credit_bytes: queueBytesMax, ack_interval_ms: 250 })
    const bytes = 2_000_000
    const sending = obey(client, bytes, 6_401)
    await eventually('its credit is used up', () => {
      return server.sessions.metrics().queuedBytes === queueBytesMax
    })
    engine.release()
    await sending
    await eventually('everything is acknowledged', () => {
      const last = client.of('audio_ack').at(-1)
      return last?.credit_bytes === bytes + queueBytesMax && last.processed_ms === bytes / 32
    })
    const { stats } = await client.end()
    expect(server.sessions.metrics().queuedBytesPeak).toBeLessThanOrEqual(queueBytesMax)
    expect(stats).toMatchObject({ received_bytes: bytes, pauses: 0, audio_ms: bytes / 32 })
    const acks = client.of('audio_ack')
    for (const [at, ack] of acks.entries()) {
      expect(ack.credit_bytes).toBeGreaterThanOrEqual(acks[at - 1]?.credit_bytes ?? queueBytesMax)
      expect(ack.credit_bytes - ack.received_bytes).toBeLessThanOrEqual(queueBytesMax)
      expect(ack.received_bytes).toBeLessThanOrEqual(bytes)
    }
  })

  test('that has used it up is not idle while waiting for more', async () => {
    const server = start()
    const client = await openSpeech(server.port, { token: speechServers.token })
    await client.start(handshake)
    const sending = obey(client, 200_000, 3_200)
    await eventually('its queue is full', () => {
      return server.sessions.metrics().queuedBytes === queueBytesMax
    })
    const idle = await openSpeech(server.port, { token: speechServers.token })
    await idle.start()
    passTime(server.settings.idleMs)
    await eventually('the idle session ends', () => engine.endsAsked() > 0)
    expect(client.of('error')).toEqual([])
    engine.release()
    expect(await idle.refusal()).toMatchObject({ code: 'idle_timeout' })
    await sending
    expect((await client.end()).stats.received_bytes).toBe(200_000)
  })

  test('that exceeds it by far is disconnected', async () => {
    const client = await openSpeech(start().port, { token: speechServers.token })
    await client.start(handshake)
    client.sendAudio(new Uint8Array(250_000))
    expect(await client.refusal()).toMatchObject({ code: 'flow_violation', closeCode: 1008 })
  })
})

test('raw packets are counted with their overhead and keep their boundaries', async () => {
  const server = start()
  const client = await openSpeech(server.port, {
    token: speechServers.token,
    query: 'encoding=opus',
  })
  await client.start({ audio: { container: 'raw' } })
  // 20 ms of silence each.
  const packet = new Uint8Array([0xf8, 0xff, 0xfe])
  for (let count = 0; count < 20_000; count++) client.sendAudio(packet)
  await isHeldBack(server)
  // Each packet takes nine bytes on the wire and seven in the queue.
  expect(server.sessions.metrics().queuedBytesPeak).toBeLessThan(queueBytesMax + readBytesMax)
  engine.release()
  const { stats } = await client.end()
  expect(stats).toMatchObject({ received_bytes: 60_000, audio_ms: 400_000 })
  expect(stats.faults).toMatchObject({ corrupt_frames: 0 })
})
