import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { asRecord, parseJson } from '#lib/json.ts'
import { openAudioDecoder } from '#speech/decoders/open-decoder.ts'
import { StartError, stopChildren } from './support/children.ts'
import { type Gateway, startGateway } from './support/gateway.ts'
import { startServer } from './support/load.ts'
import { numberIn } from './support/options.ts'
import { writeResult } from './support/report.ts'
import { formatTable } from './support/table.ts'

export const summary =
  'A long session in real time through a server that only has POST /v1/audio/transcriptions.'
export const usage = '--url URL [--minutes 10] [--json FILE]'

/** Kennedy's inaugural address. */
const recording = join(import.meta.dir, '../test/recordings/speech/jfk.opus')
const spoken =
  'and so my fellow americans ask not what your country can do for you ask what you can do for your country'
const rateHz = 16_000
const pauseMs = 1_000
const sendEveryMs = 100
/** After the end of the audio. */
const slackMs = 120_000

type Heard = {
  readonly text: string
  readonly finals: number
  readonly partials: number
  readonly stats: Readonly<Record<string, unknown>>
  readonly endMs: number
}

export async function run(args: readonly string[]): Promise<number> {
  const { url, minutes, jsonFile } = readOptions(args)
  try {
    const gateway = await startGateway({
      upstreamPort: await startServer('embedding-upstream.ts', ['8']),
      upstreamApi: 'chat',
      logLevel: 'warn',
      configLines: `[[engine]]\nname = "plain"\nkind = "openai-transcriptions"\nurl = "${url}"\nlanguages = ["en"]\n`,
    })
    const once = await samplesOf(recording)
    const repeats = Math.ceil((minutes * 60_000) / ((once.length / rateHz) * 1_000 + pauseMs))
    const heard = await speak(gateway, Buffer.concat(Array(repeats).fill(withPause(once))))
    const wrong = editDistance(wordsOf(heard.text), Array(repeats).fill(wordsOf(spoken)).flat())
    const { audio_ms, silence_ms, untranscribed_ms, gaps } = heard.stats
    const row = { ...heard, text: undefined, repeats, wrong }
    console.log(
      formatTable(
        ['audio', 'silence', 'lost', 'gaps', 'finals', 'partials', 'words', 'wrong', 'end'],
        [
          [
            `${(Number(audio_ms) / 1_000).toFixed(1)} s`,
            `${(Number(silence_ms) / 1_000).toFixed(1)} s`,
            `${untranscribed_ms} ms`,
            String(Array.isArray(gaps) ? gaps.length : gaps),
            String(heard.finals),
            String(heard.partials),
            `${wordsOf(heard.text).length} of ${repeats * wordsOf(spoken).length}`,
            String(wrong),
            `${(heard.endMs / 1_000).toFixed(1)} s`,
          ],
        ],
      ),
    )
    writeResult('transcription-server', { jsonFile }, { row })
    return Number(untranscribed_ms) === 0 ? 0 : 1
  } finally {
    await stopChildren()
  }
}

function readOptions(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      url: { type: 'string', default: '' },
      minutes: { type: 'string', default: '10' },
      json: { type: 'string' },
    },
  })
  if (values.url === '') throw new StartError('--url names no server')
  const minutes = numberIn(values.minutes, { name: 'minutes', from: 0.1, to: 600 })
  return { url: values.url, minutes, jsonFile: values.json }
}

async function samplesOf(path: string): Promise<Int16Array> {
  const format = { encoding: 'opus', container: 'ogg', sampleRateHz: 48_000, channels: 1 } as const
  const decoder = await openAudioDecoder(format, rateHz)
  const pieces = [...decoder.decode(await Bun.file(path).bytes())].map((piece) => piece.slice())
  pieces.push(...[...decoder.end()].map((piece) => piece.slice()))
  decoder.close()
  return Int16Array.from(pieces.flatMap((piece) => [...piece]))
}

function withPause(samples: Int16Array): Buffer {
  const padded = new Int16Array(samples.length + (rateHz * pauseMs) / 1_000)
  padded.set(samples)
  return Buffer.from(padded.buffer)
}

/** One session that speaks in real time. */
function speak({ port, bearer }: Gateway, audio: Buffer): Promise<Heard> {
  const { promise, resolve, reject } = Promise.withResolvers<Heard>()
  const query = `lang=en&encoding=pcm_int16&sample_rate_hz=${rateHz}&token=${bearer}`
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stt?${query}`)
  const audioMs = (audio.length / 2 / rateHz) * 1_000
  const finals: string[] = []
  let partials = 0
  let startedMs = 0
  let sending: Timer | undefined
  const failure = setTimeout(
    () => reject(new StartError('the session did not end')),
    audioMs + slackMs,
  )

  function start(): void {
    startedMs = performance.now()
    let sent = 0
    sending = setInterval(() => {
      const dueSamples = Math.floor(((performance.now() - startedMs) * rateHz) / 1_000)
      const until = Math.min(audio.length, dueSamples * 2)
      socket.send(audio.subarray(sent, until))
      sent = until
      if (sent < audio.length) return
      clearInterval(sending)
      socket.send(JSON.stringify({ type: 'session_end' }))
    }, sendEveryMs)
  }

  function take(frame: Readonly<Record<string, unknown>>): void {
    if (frame['type'] === 'session_ready') start()
    else if (frame['type'] === 'transcript' && frame['is_final'] === true) {
      finals.push(String(frame['text']))
    } else if (frame['type'] === 'transcript') partials += 1
    else if (frame['type'] === 'error') reject(new StartError(JSON.stringify(frame['error'])))
    else if (frame['type'] === 'session_end') {
      const endMs = performance.now() - startedMs - audioMs
      const stats = asRecord(frame['stats'])
      resolve({ text: finals.join(' '), finals: finals.length, partials, stats, endMs })
    }
  }

  socket.onopen = () => socket.send('{}')
  socket.onmessage = ({ data }) => take(asRecord(parseJson(String(data))))
  socket.onclose = ({ code, reason }) => {
    clearInterval(sending)
    clearTimeout(failure)
    reject(new StartError(`the session was closed with ${code} ${reason}`))
  }
  return promise
}

function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/[a-z']+/g) ?? []
}

/** Words that are missing, added or replaced. */
function editDistance(heard: readonly string[], expected: readonly string[]): number {
  let above = Array.from({ length: expected.length + 1 }, (_, at) => at)
  for (const [row, word] of heard.entries()) {
    const current = [row + 1]
    for (const [at, other] of expected.entries()) {
      const replaced = (above[at] ?? 0) + (word === other ? 0 : 1)
      current.push(Math.min(replaced, (above[at + 1] ?? 0) + 1, (current[at] ?? 0) + 1))
    }
    above = current
  }
  return above.at(-1) ?? 0
}
