/**
 * A process that speaks, started by `speaker-process.ts`: synthesis blocks for up to seconds. It serves one
 * text at a time until the gateway disconnects or kills it.
 */
import { serveGateway } from '#lib/compute-process.ts'
import { createResampler, type Resampler } from '#lib/resample.ts'
import { OggOpusWriter } from './ogg-opus.ts'
import { runCommand } from './wasi.ts'
import { type FromChild, pcmRateHz, type ToChild, voiceRateHz } from './wire.ts'

/** What is used of the MP3 encoder, which is installed on demand. */
type Mp3Encoder = {
  configure(options: { sampleRate: number; channels: 1; bitrate: 64 }): void
  encode(channels: readonly [Float32Array]): Uint8Array
  finalize(): Uint8Array
}
type EncoderPackage = { readonly createMp3Encoder: () => Promise<Mp3Encoder> }
/** What is used of the Opus encoder. */
type OpusEncoder = {
  setBitrate(bitsPerS: number): void
  encode(frame: Uint8Array, samples: number): Uint8Array
  delete(): void
}
type OpusPackage = {
  readonly default: new (rateHz: number, channels: 1, application: number) => OpusEncoder
}
type Begin = Extract<ToChild, { type: 'begin' }>

const headerBytes = 44
/** A sentence of 400 characters at a quarter of the speed takes less. */
const sentenceBytesMax = 16 * 1024 * 1024
const fullScale = 32_768
const opusBitsPerS = 32_000
/** libopus: OPUS_APPLICATION_VOIP. */
const opusForVoice = 2048

let program: WebAssembly.Module | null = null
let mp3: Mp3Encoder | null = null
let OpusEncoder: OpusPackage['default'] | null = null
let opus: { readonly encoder: OpusEncoder; readonly writer: OggOpusWriter } | null = null
let current: Begin | null = null
let resampler: Resampler | null = null

serveGateway()

process.on('message', async (message: ToChild) => {
  let reply: FromChild
  try {
    reply = await handle(message)
  } catch (error) {
    reply = { type: 'failed', detail: String(error) }
  }
  process.send?.(reply)
})

async function handle(message: ToChild): Promise<FromChild> {
  switch (message.type) {
    case 'load': {
      program = await WebAssembly.compile(await Bun.file(message.files.program).arrayBuffer())
      const { createMp3Encoder }: EncoderPackage = await import(message.files.mp3Encoder)
      mp3 = await createMp3Encoder()
      const { default: Opus }: OpusPackage = await import(message.files.opusEncoder)
      OpusEncoder = Opus
      return { type: 'ready' }
    }
    case 'begin':
      current = message
      return { type: 'audio', bytes: begin(message) }
    case 'say':
      return { type: 'audio', bytes: encode(synthesise(message.text)) }
    case 'finish':
      return { type: 'audio', bytes: finish() }
  }
}

/** Prepares what the format needs; returns the head of the file. */
function begin({ format }: Begin): Uint8Array {
  opus?.encoder.delete()
  opus = null
  resampler = null
  switch (format) {
    case 'mp3':
      mp3?.configure({ sampleRate: voiceRateHz, channels: 1, bitrate: 64 })
      return new Uint8Array()
    case 'opus': {
      if (OpusEncoder === null) throw new Error('nothing was loaded')
      const encoder = new OpusEncoder(voiceRateHz, 1, opusForVoice)
      encoder.setBitrate(opusBitsPerS)
      const writer = new OggOpusWriter(voiceRateHz, (frame) =>
        encoder.encode(frame, frame.length / 2),
      )
      opus = { encoder, writer }
      return writer.begin()
    }
    case 'pcm':
      resampler = createResampler(voiceRateHz, pcmRateHz)
      return new Uint8Array()
    case 'wav':
      return wavHeader()
  }
}

/** 16-bit samples at `voiceRateHz`. */
function synthesise(text: string): Uint8Array {
  if (program === null || current === null) throw new Error('nothing was begun')
  const { voice, speed } = current
  const stretch = `duration_stretch=${(1 / speed).toFixed(3)}`
  const args = ['flite', '-voice', voice, '--setf', stretch, '-t', text, '-o', '/speech.wav']
  const file = runCommand(program, args, sentenceBytesMax)
  const header = new DataView(file.buffer, file.byteOffset, file.length)
  if (file.length < headerBytes || header.getUint32(24, true) !== voiceRateHz) {
    throw new Error('unexpected audio')
  }
  return file.slice(headerBytes)
}

function encode(samples: Uint8Array): Uint8Array {
  switch (current?.format) {
    case 'mp3':
      // The encoder reuses its buffer.
      return mp3?.encode([toFloats(samples)]).slice() ?? new Uint8Array()
    case 'opus':
      return opus?.writer.push(samples) ?? new Uint8Array()
    case 'pcm':
      return toBytes(resampler?.push(toFloats(samples)) ?? new Float32Array())
    default:
      return samples
  }
}

function finish(): Uint8Array {
  if (current?.format === 'mp3') return mp3?.finalize().slice() ?? new Uint8Array()
  if (current?.format === 'opus') return opus?.writer.finish() ?? new Uint8Array()
  return toBytes(resampler?.flush() ?? new Float32Array())
}

function toFloats(samples: Uint8Array): Float32Array {
  const whole = new Int16Array(samples.buffer, samples.byteOffset, samples.length >> 1)
  return Float32Array.from(whole, (sample) => sample / fullScale)
}

function toBytes(samples: Float32Array): Uint8Array {
  const whole = Int16Array.from(samples, (sample) =>
    Math.max(-fullScale, Math.min(fullScale - 1, Math.round(sample * fullScale))),
  )
  return new Uint8Array(whole.buffer)
}

/** Of a stream, whose length is unknown. */
function wavHeader(): Uint8Array {
  const header = Buffer.alloc(headerBytes)
  const unknownBytes = 0xffff_ffff
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(unknownBytes, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(voiceRateHz, 24)
  header.writeUInt32LE(2 * voiceRateHz, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(unknownBytes, 40)
  return header
}
