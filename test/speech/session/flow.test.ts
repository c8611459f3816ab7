import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { createGatedEngine, type GatedEngine } from '#test/support/gated-engine.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { createScriptedEngine, type ScriptedEngine } from '#test/support/scripted-engine.ts'
import { openSpeech, type SpeechClient } from '#test/support/speech-client.ts'
import {
  type SpeechServer,
  type SpeechServerOptions,
  startSpeechServer,
} from '#test/support/speech-server.ts'

/** Clients that send more than an engine takes. */

const queueBytesMax = 65_536
/** What Bun may have read before it hears of a pause. */
const readBytesMax = 524_288

let gateway: Gateway
let token: string
let inner: ScriptedEngine
let engine: GatedEngine
const servers: SpeechServer[] = []

beforeAll(async () => {
  gateway = await startGateway()
  token = await gateway.token()
})
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop()
})
afterAll(() => gateway.stop())

function start(speech: SpeechServerOptions['speech'] = {}): SpeechServer {
  inner = createScriptedEngine({ takeMs: 60_000 })
  engine = createGatedEngine(inner)
  const server = startSpeechServer(gateway, { engines: [engine], speech })
  servers.push(server)
  return server
}

/** Sends silence without asking whether anybody takes it. */
function flood(client: SpeechClient, bytes: number, frameBytes = 3_200): void {
  const frame = new Uint8Array(frameBytes)
  for (let sent = 0; sent < bytes; sent += frameBytes) {
    client.sendAudio(frame.subarray(0, Math.min(frameBytes, bytes - sent)))
  }
}

/** A client is not read any more: what it has sent does not arrive. */
async function isHeldBack(server: SpeechServer): Promise<void> {
  await eventually('the queue is full', () => server.sessions.metrics().queuedBytes > queueBytesMax)
}

describe('a client that floods an engine that takes nothing', () => {
  test('costs its queue and one read, and nothing is lost', async () => {
    const server = start()
    const client = await openSpeech(server.port, { token })
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

  test('leaves room for the others, until all together have used up theirs', async () => {
    const server = start({ queueTotalBytesMax: 4 * queueBytesMax })
    const clients: SpeechClient[] = []
    for (let count = 0; count < 4; count++) {
      const client = await openSpeech(server.port, { token })
      await client.start()
      clients.push(client)
    }
    const late = await openSpeech(server.port, { token })
    for (const client of clients) flood(client, 1_000_000)
    await eventually(
      'all room is used up',
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

  test('and then vanishes is noticed, though nobody reads what it sent', async () => {
    const server = start({ resumeMs: 300 })
    const client = await openSpeech(server.port, { token })
    await client.start()
    flood(client, 8_000_000)
    await isHeldBack(server)
    client.socket.destroy()
    await eventually('its socket is gone', () => server.sessions.metrics().connections === 0)
    await eventually('its session is over', () => server.sessions.metrics().sessions === 0)
    expect(server.sessions.metrics().queuedBytes).toBe(0)
    expect(inner.running()).toBe(0)
    expect(server.logLines.join()).toContain('"reason":"client_lost"')
  })

  test('gets no more than its requests for finals either', async () => {
    const client = await openSpeech(start().port, { token })
    await client.start()
    for (let count = 0; count < 40; count++) client.send({ type: 'finalize', id: `f${count}` })
    expect(await client.refusal()).toMatchObject({ code: 'flow_violation', closeCode: 1008 })
  })
})

describe('a client that asks for credit', () => {
  const handshake = { options: { flow: 'credit' } }

  /** Sends `bytes` as the credit allows, in frames of up to `frameBytes`. */
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

  test('and obeys is never paused, and nothing waits beyond its window', async () => {
    const server = start()
    const client = await openSpeech(server.port, { token })
    const { flow } = await client.start(handshake)
    expect(flow).toEqual({ mode: 'credit', credit_bytes: queueBytesMax, ack_interval_ms: 250 })
    const bytes = 2_000_000
    const sending = obey(client, bytes, 6_401)
    await eventually('all of its credit is used up', () => {
      return server.sessions.metrics().queuedBytes === queueBytesMax
    })
    engine.release()
    await sending
    await eventually('all of it is acknowledged', () => {
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

  test('and has used up all of it is not idle while it waits for more', async () => {
    const server = start({ idleMs: 100, finalizeMs: 100 })
    const client = await openSpeech(server.port, { token })
    await client.start(handshake)
    const sending = obey(client, 200_000, 3_200)
    await eventually('its queue is full', () => {
      return server.sessions.metrics().queuedBytes === queueBytesMax
    })
    const idle = await openSpeech(server.port, { token })
    await idle.start()
    expect(await idle.refusal()).toMatchObject({ code: 'idle_timeout' })
    expect(client.of('error')).toEqual([])
    engine.release()
    await sending
    expect((await client.end()).stats.received_bytes).toBe(200_000)
  })

  test('and sends far more is let go', async () => {
    const client = await openSpeech(start().port, { token })
    await client.start(handshake)
    client.sendAudio(new Uint8Array(250_000))
    expect(await client.refusal()).toMatchObject({ code: 'flow_violation', closeCode: 1008 })
  })
})

test('bare packets are counted with what they cost, and keep their bounds while they wait', async () => {
  const server = start()
  const client = await openSpeech(server.port, { token, query: 'encoding=opus' })
  await client.start({ audio: { container: 'raw' } })
  // 20 ms of silence each.
  const packet = new Uint8Array([0xf8, 0xff, 0xfe])
  for (let count = 0; count < 20_000; count++) client.sendAudio(packet)
  await isHeldBack(server)
  // Of a read of such packets, each takes nine bytes on the wire and seven in the queue.
  expect(server.sessions.metrics().queuedBytesPeak).toBeLessThan(queueBytesMax + readBytesMax)
  engine.release()
  const { stats } = await client.end()
  expect(stats).toMatchObject({ received_bytes: 60_000, audio_ms: 400_000 })
  expect(stats.faults).toMatchObject({ corrupt_frames: 0 })
})
