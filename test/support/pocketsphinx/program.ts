import { createRecogniser, sampleRateHz } from './library.ts'

/**
 * A real speech engine of kind `exec`, English only: samples (or frames, with `--framed`) on stdin,
 * one JSON object per line on stdout.
 */
const blockSamples = (sampleRateHz * 40) / 1000
const progressEveryBlocks = 5
const headerBytes = 5

const recogniser = createRecogniser()
let waiting = Buffer.alloc(0)
let blocks = 0
let samplesTaken = 0
let isSpeaking = false
let lastPartial = ''

const audioS = () => samplesTaken / sampleRateHz
const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`)

say({ type: 'ready' })
if (process.argv.includes('--framed')) await readFrames()
else await readSamples()
closeUtterance()
say({ type: 'progress', audio_s: audioS() })
say({ type: 'done' })

async function readSamples() {
  for await (const piece of Bun.stdin.stream()) takeBytes(piece)
  takeRest()
}

/** Frames of 4 bytes little-endian length, 1 byte type (1 audio, 2 finalize, 3 end), content. */
async function readFrames() {
  let buffered = Buffer.alloc(0)
  for await (const piece of Bun.stdin.stream()) {
    buffered = Buffer.concat([buffered, piece])
    while (buffered.length >= headerBytes) {
      const frameBytes = headerBytes + buffered.readUInt32LE(0)
      if (buffered.length < frameBytes) break
      const type = buffered[4]
      const content = buffered.subarray(headerBytes, frameBytes)
      buffered = buffered.subarray(frameBytes)
      if (type === 1) takeBytes(content)
      if (type === 2) finalize()
      if (type === 3) return takeRest()
    }
  }
}

function finalize() {
  takeRest()
  closeUtterance()
  say({ type: 'progress', audio_s: audioS() })
  say({ type: 'finalized' })
}

function takeBytes(bytes: Uint8Array) {
  waiting = Buffer.concat([waiting, bytes])
  while (waiting.length >= blockSamples * 2) {
    takeBlock(waiting.subarray(0, blockSamples * 2))
    waiting = waiting.subarray(blockSamples * 2)
  }
}

function takeRest() {
  const whole = waiting.subarray(0, waiting.length - (waiting.length % 2))
  if (whole.length > 0) takeBlock(whole)
  waiting = Buffer.alloc(0)
}

function takeBlock(bytes: Uint8Array) {
  // Copied, because a Buffer may be an unaligned view.
  const samples = new Int16Array(new Uint8Array(bytes).buffer)
  const wasSpeaking = isSpeaking
  isSpeaking = recogniser.take(samples)
  samplesTaken += samples.length
  blocks += 1
  if (wasSpeaking && !isSpeaking) closeUtterance()
  if (isSpeaking) sayPartial()
  if (blocks % progressEveryBlocks === 0) say({ type: 'progress', audio_s: audioS() })
}

function sayPartial() {
  const text = recogniser.hypothesis()
  if (text === '' || text === lastPartial) return
  lastPartial = text
  say({ type: 'partial', text, audio_s: audioS() })
}

function closeUtterance() {
  const { text, words } = recogniser.closeUtterance()
  if (text !== '' || lastPartial !== '') say({ type: 'final', text, words, audio_s: audioS() })
  lastPartial = ''
}
