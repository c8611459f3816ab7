import { expect, test } from 'bun:test'
import { loadConfig } from '#config/load.ts'
import { AppError } from '#lib/errors.ts'
import { AudioBudget } from '#speech/session/audio-queue.ts'
import { readHandshake } from '#speech/session/client-frames.ts'
import { SpeechSession } from '#speech/session/session.ts'
import { eventually } from '#test/support/eventually.ts'

const query = {
  language: 'en',
  encoding: 'pcm_int16',
  sampleRateHz: 16_000,
  engineName: null,
  ignored: [],
} as const

const context = {
  requestId: 'req_1',
  principal: { userId: 'ann', groups: [] },
  keyId: null,
  trace: null,
  receivedAtMs: 0,
}

test('frames continue after the buffer drained without a drain event', async () => {
  const sent: string[] = []
  const socket = {
    bufferedBytes: 1_000_000,
    isPaused: false,
    getBufferedAmount: () => socket.bufferedBytes,
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
      budget: new AudioBudget(1_000_000),
      openRecognition: async () => {
        throw new AppError('service_unavailable', 'No engine.')
      },
    },
    { context, query, handshake: readHandshake('{}', query), dialect: null },
    () => {},
  )
  session.open({ socket, finish: (code) => closeCodes.push(code), supersede() {} })
  await eventually('the session has failed', session.isOver.bind(session))
  session.tick()
  expect([sent.length, closeCodes.length]).toEqual([0, 0])

  socket.bufferedBytes = 0
  session.tick()
  expect(sent.join()).toStartWith('{"type":"error"')
  expect(closeCodes).toHaveLength(1)
})
