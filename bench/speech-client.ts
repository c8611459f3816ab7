/**
 * Example client of `/v1/stt`: streams a file, or the microphone until Ctrl-C. Prints partial
 * transcripts to standard error and finals to standard output.
 *
 *     TOKEN=… bun bench/speech-client.ts [--url http://127.0.0.1:8080] [--lang en] speech.ogg
 *     TOKEN=… bun bench/speech-client.ts --microphone
 */
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:8080' },
    lang: { type: 'string', default: 'en' },
    microphone: { type: 'boolean', default: false },
  },
})
/** Each prints 16-bit mono PCM at 16 kHz. */
const recorders = [
  'arecord -q -t raw -f S16_LE -r 16000 -c 1',
  'rec -q -t raw -e signed -b 16 -r 16000 -c 1 -',
  'ffmpeg -loglevel error -f pulse -i default -ac 1 -ar 16000 -f s16le -',
].map((line) => line.split(' '))
const encodings: Record<string, string> = { wav: 'wav', mp3: 'mp3' }

const [path = ''] = positionals
const encoding = encodings[path.split('.').at(-1) ?? ''] ?? 'opus'
const format = values.microphone ? { encoding: 'pcm_int16', sample_rate_hz: '16000' } : { encoding }
const query = new URLSearchParams({
  lang: values.lang,
  ...format,
  token: process.env['TOKEN'] ?? '',
})
const socket = new WebSocket(`${values.url.replace(/^http/, 'ws')}/v1/stt?${query}`)

/** Credit and bytes sent, since the start of the session. */
let credit = 0
let sent = 0
let wake = () => {}

async function sendAudio(audio: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of audio) {
    for (let at = 0; at < chunk.length; at += 4096) {
      const piece = chunk.subarray(at, at + 4096)
      while (sent + piece.length > credit) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      socket.send(piece)
      sent += piece.length
    }
  }
  socket.send(JSON.stringify({ type: 'session_end' }))
}

function openAudio(): AsyncIterable<Uint8Array> {
  if (!values.microphone) return Bun.file(path).stream()
  const recorder = recorders.find(([program = '']) => Bun.which(program) !== null)
  if (recorder === undefined) throw new Error('arecord, rec (of sox) or ffmpeg is needed')
  const recording = Bun.spawn(recorder, { stdout: 'pipe', stderr: 'inherit' })
  process.once('SIGINT', () => recording.kill())
  return recording.stdout
}

socket.onopen = () => {
  const options = { flow: 'credit', live: values.microphone }
  socket.send(JSON.stringify({ type: 'session_start', options }))
}
socket.onmessage = ({ data }) => {
  const frame = JSON.parse(data)
  credit = frame.credit_bytes ?? frame.flow?.credit_bytes ?? credit
  wake()
  const notice = frame.engine?.notice
  if (frame.type === 'session_ready' && notice !== undefined) console.error(`! ${notice}`)
  if (frame.type === 'session_ready') void sendAudio(openAudio())
  else if (frame.type === 'transcript' && !frame.is_final) console.error(`… ${frame.text}`)
  else if (frame.type === 'transcript') console.log(`${frame.start.toFixed(2)}s ${frame.text}`)
  else if (frame.type === 'warning') console.error(`! ${frame.message}`)
  else if (frame.type === 'error') console.error(`${frame.error.code}: ${frame.error.message}`)
  else if (frame.type === 'session_end') console.error(`${frame.stats.audio_ms} ms of audio`)
}
socket.onclose = ({ code }) => process.exit(code === 1000 ? 0 : 1)
