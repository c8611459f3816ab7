import { afterAll, expect, test } from 'bun:test'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { runGatewayCommand } from '#test/support/gateway-command.ts'
import {
  configFile,
  signToken,
  startGatewayProcess,
  stopProcesses,
  temporaryFolder,
} from '#test/support/process.ts'
import { openSpeech } from '#test/support/speech-client.ts'
import {
  kennedy,
  kennedyWords,
  lacksWhisper,
  plainWords,
  serveHub,
  speechRuntime,
  tinyWhisper,
} from '#test/support/whisper-weights/tiny-whisper.ts'

const repository = 'org/whisper-tiny.en'

afterAll(stopProcesses)

test.skipIf(lacksWhisper)(
  'speech install makes a running gateway recognise a recording, live and as a file',
  async () => {
    const hub = await serveHub(repository, tinyWhisper)
    const dataFolder = temporaryFolder()
    // The runtime from the package registry is the same for all tests.
    symlinkSync(speechRuntime, join(dataFolder, 'sherpa'))
    const settings = configFile(`[installer]\nhub_url = "${hub.url}"\n`)
    const gateway = await startGatewayProcess({
      dataFolder,
      environment: { SLUICE_CONFIG: settings },
    })
    const query = 'lang=en&encoding=opus'
    const token = await signToken()
    const before = await openSpeech(gateway.port(), { query, token })
    const demo = await before.start()
    expect(demo.engine).toMatchObject({
      name: 'demo (no words)',
      notice: expect.stringContaining('bun run speech:install'),
    })
    await before.end()

    expect(
      await runGatewayCommand(['speech', 'install', repository], { dataFolder, settings }),
    ).toEqual([
      expect.stringContaining('of 123.4 MB'),
      expect.stringContaining('org/whisper-tiny.en recognises en (123 MB)'),
      0,
    ])
    hub.stop()
    const [, findings] = await runGatewayCommand(['doctor'], { dataFolder, settings })
    expect(findings).toMatch(/speech engine "local-speech" .* is ready for en\n/)

    const recording = await Bun.file(kennedy).bytes()
    const speaker = await openSpeech(gateway.port(), { query, token })
    const ready = await speaker.start({ options: { words: true } })
    expect(ready.engine).toEqual({
      name: 'local-speech',
      features: { partials: true, words: true, confidence: false, finalize: true },
    })
    for (let at = 0; at < recording.length; at += 4_000) {
      speaker.sendAudio(recording.subarray(at, at + 4_000))
    }
    const { stats } = await speaker.end()
    expect(plainWords(speaker.finals().join(' '))).toBe(kennedyWords)
    expect(stats).toMatchObject({ untranscribed_ms: 0, words: 22 })

    const form = new FormData()
    form.append('model', 'stt')
    form.append('language', 'en')
    form.append('file', new File([recording], 'jfk.opus'))
    const answer = await gateway.request('/v1/audio/transcriptions', { method: 'POST', body: form })
    expect(answer.status).toBe(200)
    const { text } = (await answer.json()) as { text: string }
    expect(plainWords(text)).toBe(kennedyWords)
  },
)
