import { expect, test } from 'bun:test'
import { loadConfig } from '#config/load.ts'
import { AppError } from '#lib/errors.ts'
import { readHandshake } from '#speech/session/client-frames.ts'
import { createAudioBudget } from '#speech/session/intake.ts'
import { SpeechSession } from '#speech/session/session.ts'
import { eventually } from '#test/support/eventually.ts'

const query = { language: 'en', encoding: 'pcm_int16', sampleRateHz: 16_000, ignored: [] } as const

test('frames go on where what waited went out and nobody said so', async () => {
  const sent: string[] = []
  const wire = {
    bufferedBytes: 1_000_000,
    isPaused: false,
    getBufferedAmount: () => wire.bufferedBytes,
    sendText: (text: string) => sent.push(text),
    close() {},
    terminate() {},
    pause() {},
    resume() {},
    ping: () => 1,
  }
  const closeCodes: number[] = []
  const session = new SpeechSession(
    {
      settings: loadConfig({}).speech,
      drainMs: 1_000,
      budget: createAudioBudget(1_000_000),
      openRecognition: async () => {
        throw new AppError('service_unavailable', 'There is no engine.')
      },
    },
    { query, handshake: readHandshake('{}', query), userId: 'ann', requestId: 'req_1' },
    () => {},
  )
  session.open({ wire, finish: (code) => closeCodes.push(code), supersede() {} })
  await eventually('it has failed', session.isOver.bind(session))
  session.look()
  expect([sent.length, closeCodes.length]).toEqual([0, 0])

  wire.bufferedBytes = 0
  session.look()
  expect(sent.join()).toStartWith('{"type":"error"')
  expect(closeCodes).toHaveLength(1)
})
