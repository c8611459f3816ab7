import { afterEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runtimePackages } from '#speech/engines/local/package.ts'
import { EnginePool } from '#speech/engines/pool.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { startGateway } from '#test/support/gateway.ts'
import { openSpeech } from '#test/support/speech-client.ts'
import { startSpeechServer } from '#test/support/speech-server.ts'

/** Admission by the load of the model process, which runs a scripted runtime. */

const released: (() => unknown)[] = []
afterEach(async () => {
  for (const release of released.splice(0).reverse()) await release()
})

/** A runtime that needs at least `factor` of the length of audio, however fast the machine is. */
async function scriptedRuntime(factor: number): Promise<{ runtime: string; model: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-runtime-'))
  released.push(() => rmSync(folder, { recursive: true, force: true }))
  const [named = ''] = runtimePackages({ platform: 'linux', arch: 'x64' })
  const [name = '', version] = named.split('@')
  const packageFolder = join(folder, 'node_modules', name)
  mkdirSync(packageFolder, { recursive: true })
  await Bun.write(join(packageFolder, 'package.json'), JSON.stringify({ name, version }))
  await Bun.write(
    join(packageFolder, 'sherpa-onnx.js'),
    `module.exports = { OfflineRecognizer: class {
      createStream() {
        return { acceptWaveform({ samples, sampleRate }) { this.ms = samples.length / sampleRate * 1000 } }
      }
      setConfig() {}
      decode({ ms }) { Bun.sleepSync(ms * ${factor}) }
      getResult() { return { text: 'one' } }
    } }`,
  )
  const model = join(folder, 'model')
  for (const file of ['encoder.onnx', 'decoder.onnx', 'tokens.txt']) {
    await Bun.write(join(model, file), '')
  }
  return { runtime: folder, model }
}

async function arrange(factor: number, loadMax: number) {
  const { runtime, model } = await scriptedRuntime(factor)
  const deps = { ...engineDeps(), folders: { models: '/nowhere', runtime } }
  const config = engineConfig({ kind: 'local', model, openMs: 60_000, sessionsMax: 64, loadMax })
  const engine = createEngine(config, deps)
  released.push(() => engine.close())
  const choice = { language: 'en', engineName: null, avoid: null } as const
  const pool = new EnginePool([engine], deps.log)
  const signal = new AbortController().signal
  const options = { language: 'en', vocabulary: [], endpointingMs: 600 } as const
  return {
    engine,
    hasCapacity: () => pool.hasCapacity(choice),
    open: () => pool.open(choice, { ...options, signal, listener() {} }),
  }
}

test('sessions that open at the same time beyond the load of a slow model are refused as busy', async () => {
  const { open, hasCapacity } = await arrange(0.25, 0.45)
  const opened = await Promise.allSettled([open(), open(), open(), open()])
  const accepted = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const refused = opened.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  expect(accepted).toHaveLength(1)
  expect(refused.map(({ kind }) => kind)).toEqual(['busy', 'busy', 'busy'])
  expect(hasCapacity()).toBe(false)

  accepted[0]?.session.abort()
  expect(hasCapacity()).toBe(true)
  const { session } = await open()
  session.end()
  await eventually('an ended session makes room', hasCapacity)
})

test('a fast model serves as many sessions as are configured', async () => {
  const { open, hasCapacity } = await arrange(0, 1_000)
  const opened = await Promise.all(Array.from({ length: 40 }, open))
  expect(opened).toHaveLength(40)
  expect(hasCapacity()).toBe(true)
})

test('a client that cannot be served in time is refused at the start, with a time to retry', async () => {
  const { engine } = await arrange(0.25, 0.45)
  const gateway = await startGateway()
  released.push(() => gateway.stop())
  const server = startSpeechServer(gateway, { engines: [engine] })
  released.push(() => server.stop())
  const token = await gateway.token()
  const first = await openSpeech(server.port, { token })
  await first.start()
  const second = await openSpeech(server.port, { token })
  second.send({ type: 'session_start' })
  expect(await second.refusal()).toMatchObject({
    code: 'capacity',
    closeCode: 1013,
    details: { limit: 'engine', retry_after_ms: 1_000 },
  })
  await first.end()
})
