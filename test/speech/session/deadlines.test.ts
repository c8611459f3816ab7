import { describe, expect, test } from 'bun:test'
import { passTime } from '#test/support/passing-time.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { bytes, nothingIsLeft, say, wordsSaid } from './said.ts'
import { serveSpeech } from './served-speech.ts'

/** How long a client may be silent, and how long it may speak. */

const speechServers = serveSpeech()
const { start, begin } = speechServers

describe('a deadline', () => {
  test('ends an idle session after its finals', async () => {
    const engine = createScriptedEngine()
    const server = start({ engines: [engine] })
    const client = await begin(server)
    await say(client)
    passTime(server.settings.idleMs)
    expect(await client.refusal()).toMatchObject({ code: 'idle_timeout', closeCode: 1008 })
    expect(client.finals()).toEqual([wordsSaid])
    expect(client.of('error')[0]?.stats).toMatchObject({ finals: 1, untranscribed_ms: 0 })
    await nothingIsLeft(server)
    expect(engine.running()).toBe(0)
  })

  test('is postponed by keepalives', async () => {
    const server = start()
    const { idleMs } = server.settings
    const [silent, kept] = [await begin(server), await begin(server)]
    passTime(idleMs / 2)
    kept.send({ type: 'keepalive' })
    await kept.arrived()
    passTime(idleMs / 2)
    expect(await silent.refusal()).toMatchObject({ code: 'idle_timeout' })
    expect(kept.of('error')).toEqual([])
    kept.sendAudio(bytes)
    await kept.end()
    expect(kept.finals()).toEqual([wordsSaid])
  })

  test('ends a busy session at its maximum duration', async () => {
    const server = start()
    const client = await begin(server)
    const talking = setInterval(() => client.sendAudio(new Uint8Array(640)), 5)
    await client.waitFor('audio_ack')
    passTime(server.settings.sessionMsMax)
    const refusal = await client.refusal()
    clearInterval(talking)
    expect(refusal).toMatchObject({ code: 'max_session', closeCode: 1008 })
    expect(client.of('error')[0]?.stats?.untranscribed_ms).toBe(0)
    await nothingIsLeft(server)
  })
})
