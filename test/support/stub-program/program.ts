import { appendFileSync } from 'node:fs'
import { readStubScript } from './script.ts'
import { createUtterances } from './utterances.ts'

/**
 * A scripted program for engines of kind `exec`. It recognises an utterance wherever samples are not
 * zero, so all of its times are exact.
 */
const script = readStubScript(process.argv[2] ?? '{}')
const bytesPerMs = (script.sampleRateHz * 2) / 1000
const blockMs = 20
const headerBytes = 5

const utterances = createUtterances(script.sampleRateHz, say)
let audioMs = 0
let reportedMs = 0
let waiting = Buffer.alloc(0)

if (script.startsFile !== '') appendFileSync(script.startsFile, `${process.pid}\n`)
if (script.ignoresTerm) process.on('SIGTERM', () => {})
for (let line = 0; line < script.errorLines; line += 1) console.error(`error line ${line}`)
if (script.atStart === 'exit') process.exit(4)
if (script.atStart === 'silence') await Bun.sleep(600_000)
if (script.atStart === 'refuse') say({ type: 'error', code: 'refused', message: 'not this one' })
await Bun.sleep(script.readyAfterMs)
say({ type: 'ready' })
await (script.framed ? readFrames() : readSamples())
await end()

function say(message: object) {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}

async function readSamples() {
  for await (const piece of Bun.stdin.stream()) await takeBytes(piece)
}

async function readFrames() {
  let buffered = Buffer.alloc(0)
  for await (const piece of Bun.stdin.stream()) {
    buffered = Buffer.concat([buffered, piece])
    while (buffered.length >= headerBytes) {
      const frameBytes = headerBytes + buffered.readUInt32LE(0)
      if (buffered.length < frameBytes) break
      const content = buffered.subarray(headerBytes, frameBytes)
      const type = buffered[4]
      buffered = buffered.subarray(frameBytes)
      if (type === 0) say({ type: 'final', text: `options ${content}`, audio_s: 0 })
      if (type === 1) await takeBytes(content)
      if (type === 2) finalize()
      if (type === 3) return
    }
  }
}

function finalize() {
  takeRest()
  utterances.close()
  say({ type: 'progress', audio_s: audioMs / 1000 })
  say({ type: 'finalized' })
}

async function takeBytes(bytes: Uint8Array) {
  waiting = Buffer.concat([waiting, bytes])
  while (waiting.length >= blockMs * bytesPerMs) {
    take(waiting.subarray(0, blockMs * bytesPerMs))
    waiting = waiting.subarray(blockMs * bytesPerMs)
    if (script.msPerSecond > 0) await Bun.sleep((script.msPerSecond * blockMs) / 1000)
    if (script.breaksAtMs !== null && audioMs >= script.breaksAtMs) await misbehave()
  }
}

function takeRest() {
  take(waiting)
  waiting = Buffer.alloc(0)
}

function take(bytes: Uint8Array) {
  // Copied, because a Buffer may be an unaligned view.
  const samples = new Int16Array(new Uint8Array(bytes).buffer)
  audioMs += (samples.length * 1000) / script.sampleRateHz
  utterances.take(samples)
  if (audioMs - reportedMs < 200) return
  reportedMs = audioMs
  say({ type: 'progress', audio_s: audioMs / 1000 })
}

async function misbehave() {
  script.breaksAtMs = null
  switch (script.breaksBy) {
    case 'crash':
      return process.exit(3)
    case 'exit':
      return process.exit(0)
    case 'stall':
      return Bun.sleep(600_000)
    case 'garbage':
      return void process.stdout.write('Segmentation fault in the language of nobody\n')
    case 'malformed':
      return say({ type: 'final', text: 7, audio_s: 'soon' })
    case 'endless-line':
      return void process.stdout.write('x'.repeat(1_000_000))
    case 'limit':
      return say({ type: 'error', code: 'limit', message: 'an hour is enough' })
    case 'error':
      return say({ type: 'error', code: 'out_of_memory', message: 'no memory is left' })
    case 'done':
      return say({ type: 'done' })
  }
}

async function end() {
  takeRest()
  utterances.close()
  say({ type: 'progress', audio_s: audioMs / 1000 })
  if (script.atEnd === 'crash') process.exit(5)
  if (script.atEnd === 'hang') await Bun.sleep(600_000)
  if (script.atEnd === 'done-and-stay') say({ type: 'done' })
  if (script.atEnd === 'done-and-stay') await Bun.sleep(600_000)
  if (script.atEnd === 'done') say({ type: 'done' })
}
