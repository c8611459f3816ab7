import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isRecord, parseJson } from '#lib/json.ts'
import { StartError, stopChildren } from './support/children.ts'
import { type Gateway, startGateway } from './support/gateway.ts'
import { startServer } from './support/load.ts'
import { numberIn } from './support/options.ts'
import { treeUsage } from './support/process-tree.ts'
import { writeResult } from './support/report.ts'
import { formatTable } from './support/table.ts'

export const summary =
  'CPU of a speech session that opens, hears a second of audio and ends, by encoding.'
export const usage = '[--sessions 200] [--mp3 FILE] [--json FILE]'

const recording = join(import.meta.dir, '../test/recordings/speech/jfk.opus')
/** About a second at 24 kbit/s. */
const compressedBytes = 3_000
const pcmBytes = 32_000
/** Loads code and decoders. */
const warmUps = 10

type Row = { readonly encoding: string; readonly cpuMs: number }

export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      sessions: { type: 'string', default: '200' },
      mp3: { type: 'string' },
      json: { type: 'string' },
    },
  })
  const sessions = numberIn(values.sessions, { name: 'sessions', from: 10, to: 10_000 })
  const { mp3 } = values
  const encodings: [query: string, audio: Uint8Array][] = [
    ['encoding=pcm_int16&sample_rate_hz=16000', new Uint8Array(pcmBytes)],
    ['encoding=opus', (await Bun.file(recording).bytes()).subarray(0, compressedBytes)],
  ]
  if (mp3 !== undefined)
    encodings.push(['encoding=mp3', (await Bun.file(mp3).bytes()).subarray(0, compressedBytes)])
  const rows: Row[] = []
  try {
    const gateway = await startGateway({
      upstreamPort: await startServer('embedding-upstream.ts', ['8']),
      upstreamApi: 'chat',
      logLevel: 'warn',
      configLines: '[[engine]]\nname = "demo"\nkind = "demo"\n',
    })
    for (const [query, audio] of encodings) {
      for (let at = 0; at < warmUps; at++) await openOnce(gateway, query, audio)
      const before = treeUsage(gateway.pid).cpuMs
      for (let at = 0; at < sessions; at++) await openOnce(gateway, query, audio)
      const [encoding = ''] = query.replace('encoding=', '').split('&')
      rows.push({ encoding, cpuMs: (treeUsage(gateway.pid).cpuMs - before) / sessions })
    }
  } finally {
    await stopChildren()
  }
  const cells = rows.map(({ encoding, cpuMs }) => [encoding, `${cpuMs.toFixed(2)} ms`])
  console.log(`\n${formatTable(['encoding', 'CPU per session'], cells)}\n`)
  writeResult('speech-open', { jsonFile: values.json }, { sessions, rows })
  return 0
}

function openOnce({ port, bearer }: Gateway, query: string, audio: Uint8Array): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stt?lang=en&${query}&token=${bearer}`)
  socket.onopen = () => socket.send('{}')
  socket.onmessage = ({ data }) => {
    const frame = parseJson(String(data))
    if (!isRecord(frame)) return
    if (frame['type'] === 'session_ready') {
      socket.send(audio)
      socket.send(JSON.stringify({ type: 'session_end' }))
    } else if (frame['type'] === 'session_end') {
      resolve()
    } else if (frame['type'] === 'error') {
      reject(new StartError(JSON.stringify(frame['error'])))
    }
  }
  socket.onclose = ({ code, reason }) => reject(new StartError(`closed with ${code} ${reason}`))
  return promise
}
