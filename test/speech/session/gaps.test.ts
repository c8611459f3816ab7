import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { builtInEngine } from '#speech/engines/demo.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineDeps } from '#test/support/engine-session.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { openSpeech } from '#test/support/speech-client.ts'
import { speechFile, speechToolsExist, toolOutput } from '#test/support/speech-material.ts'
import { type SpeechServer, startSpeechServer } from '#test/support/speech-server.ts'
import {
  startTranscriptionServer,
  type TranscriptionServer,
} from '#test/support/transcription-server.ts'
import { readPages, writePages } from '../decoders/ogg-builder.ts'

/** Audio that is missing in its container, live and in files. */

let gateway: Gateway
let token: string
let live: SpeechServer
let files: TranscriptionServer

beforeAll(async () => {
  gateway = await startGateway()
  token = await gateway.token()
  const engines = [createEngine(builtInEngine, engineDeps())]
  live = startSpeechServer(gateway, { engines })
  files = await startTranscriptionServer(gateway, { engines })
})
afterAll(async () => {
  await files.stop()
  await live.stop()
  await gateway.stop()
})

/** Where the sentence starts and ends without a gap. */
const spoken = { start: 0.74, end: 4.46 }
const durationMs = 5_706
/** Within what the demo engine finds them. */
const toleranceS = 0.2

/** The sentence in WebM, whose timestamps jump by `missingMs` after 0.3 s, in the silence before it. */
function webmWithJump(missingMs: number): Uint8Array {
  const filter = `setts=ts=TS+gte(N\\,15)*${missingMs}`
  const copy = ['-c', 'copy', '-bsf:a', filter, '-f', 'webm', '-live', '1', 'OUT']
  const command = ['ffmpeg', '-v', 'error', '-y', '-i', 'IN', ...copy]
  return toolOutput(command, speechFile('fox', 'webm'))
}

async function transcribe(audio: Uint8Array) {
  const client = await openSpeech(live.port, { query: 'encoding=opus', token })
  await client.start()
  for (let at = 0; at < audio.length; at += 1_000) client.sendAudio(audio.subarray(at, at + 1_000))
  const { stats } = await client.end()
  const finals = client.of('transcript').filter(({ is_final }) => is_final)
  const lost = client.of('warning').filter(({ code }) => code === 'audio_lost')
  return { client, stats, finals, lost, start: finals[0]?.start ?? 0, end: finals.at(-1)?.end ?? 0 }
}

async function post(audio: Uint8Array, response_format: string) {
  const file = new File([audio.slice()], 'audio')
  const response = await files.post({ file, model: 'stt', response_format })
  expect(response.status).toBe(200)
  return response
}

const isNear = (seconds: number, wanted: number) =>
  expect(Math.abs(seconds - wanted)).toBeLessThan(toleranceS)

describe.skipIf(!speechToolsExist)('audio that is missing', () => {
  test.each([800, 30_000, 3_000_000])(
    'for %p ms in WebM is a gap, and later times take it into account',
    async (missingMs) => {
      const { client, stats, lost, start, end } = await transcribe(webmWithJump(missingMs))
      isNear(start, spoken.start + missingMs / 1_000)
      isNear(end, spoken.end + missingMs / 1_000)
      isNear(client.of('speech_start')[0]?.at ?? 0, spoken.start + missingMs / 1_000)
      expect(lost.length).toBe(1)
      const { details } = lost[0] ?? {}
      const [gap] = stats.gaps
      expect(details).toEqual({
        reason: 'missing',
        start_ms: Math.round((gap?.start ?? 0) * 1_000),
        end_ms: Math.round((gap?.end ?? 0) * 1_000),
      })
      isNear(gap?.start ?? 0, 0.3)
      expect(Math.round(((gap?.end ?? 0) - (gap?.start ?? 0)) * 100)).toBe(missingMs / 10)
      expect(stats.gaps.length).toBe(1)
      isNear(stats.untranscribed_ms / 1_000, missingMs / 1_000)
      isNear(stats.audio_ms / 1_000, (durationMs + missingMs) / 1_000)
      expect(stats.silence_ms).toBeWithin(1_000, durationMs)
      expect(stats.faults.decode_gaps).toBe(1)
    },
  )

  test('for hours according to a forged timestamp is not believed', async () => {
    const { stats, lost, start } = await transcribe(webmWithJump(10 * 3_600_000))
    isNear(start, spoken.start)
    isNear(stats.audio_ms / 1_000, durationMs / 1_000)
    expect(stats).toMatchObject({ gaps: [], untranscribed_ms: 0, faults: { decode_gaps: 1 } })
    expect(lost).toEqual([])
  })

  test('with an Ogg page leaves the times of the rest', async () => {
    const pages = readPages(speechFile('fox', 'ogg'))
    const whole = await transcribe(writePages(pages))
    expect(whole.stats).toMatchObject({ gaps: [], faults: { decode_gaps: 0 } })
    const [before, lost] = [pages[2], pages[3]]
    const lostMs = Number((lost?.granule ?? 0n) - (before?.granule ?? 0n)) / 48
    const cut = await transcribe(writePages(pages.toSpliced(3, 1)))
    isNear(cut.end, whole.end)
    expect(cut.stats.audio_ms).toBe(whole.stats.audio_ms)
    expect(cut.stats.untranscribed_ms).toBeWithin(Math.floor(lostMs), Math.ceil(lostMs) + 2)
    expect(cut.stats.gaps.length).toBe(1)
    expect(cut.stats.faults.decode_gaps).toBe(1)
  })

  test('in a file is a gap of its transcript, in every format', async () => {
    const missingMs = 30_000
    const audio = webmWithJump(missingMs)
    const verbose = Object(await (await post(audio, 'verbose_json')).json())
    isNear(verbose.segments[0].start, spoken.start + missingMs / 1_000)
    isNear(verbose.duration, (durationMs + missingMs) / 1_000)
    isNear(verbose.untranscribed_ms / 1_000, missingMs / 1_000)
    isNear(verbose.gaps[0].start, 0.3)
    isNear(verbose.gaps[0].end, 0.3 + missingMs / 1_000)
    const short = await (await post(audio, 'json')).json()
    expect(short).toMatchObject({ gaps: verbose.gaps, untranscribed_ms: verbose.untranscribed_ms })
    expect(await (await post(audio, 'srt')).text()).toContain('00:00:3')
  })
})
