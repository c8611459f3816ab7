import { signal } from '@preact/signals'
import { createSampleOutput } from '../../../src/speech/decoders/sample-output.ts'
import { createWavDecoder } from '../../../src/speech/decoders/wav.ts'
import { isAborted, send } from '../api/call.ts'
import { text as textOf } from '../texts/texts.ts'
import { toPieces } from './pieces.ts'
import { createPlayer, PlaybackBlocked, rateHz } from './player.ts'
import type { Voice } from './voices.ts'

/** What is being spoken, or was spoken last. Times are those of the first sound and of all sound so far. */
export type Spoken = {
  /** Of the button that began it. */
  readonly id: string
  readonly state: 'waiting' | 'playing' | 'ended'
  readonly firstMs: number | null
  readonly audioS: number
  /** Until all audio had arrived. */
  readonly arrivedMs: number | null
}

export const spoken = signal<Spoken | null>(null)

let stop: (() => void) | null = null

/** An answer that is not WAV is decoded whole; it may have this size. */
const wholeBytesMax = 64 * 1024 * 1024

/** Speaks texts one after the other; another text that is being spoken ends. Throws if it fails. */
export async function speak(id: string, texts: readonly string[], voice: Voice): Promise<void> {
  stopSpeaking()
  const controller = new AbortController()
  const startedAt = performance.now()
  const now = () => performance.now() - startedAt
  const isCurrent = () => !controller.signal.aborted
  const note = (facts: Partial<Spoken>) => {
    if (isCurrent() && spoken.value !== null) spoken.value = { ...spoken.value, ...facts }
  }
  const player = createPlayer(() =>
    note({ state: 'playing', firstMs: spoken.value?.firstMs ?? now() }),
  )
  stop = () => {
    note({ state: 'ended' })
    controller.abort()
    player.stop()
  }
  spoken.value = { id, state: 'waiting', firstMs: null, audioS: 0, arrivedMs: null }
  try {
    let audioS = 0
    for (const piece of toPieces(texts)) {
      const response = await requestSpeech(piece, voice, 'wav', controller.signal)
      for await (const samples of readAudio(response)) {
        audioS += samples.length / rateHz
        note({ audioS })
        await player.play(samples)
        if (!isCurrent()) return
      }
    }
    note({ arrivedMs: now() })
    await player.drain()
  } catch (error) {
    if (isAborted(error) || !isCurrent()) return
    throw error instanceof PlaybackBlocked ? new Error(textOf('voice.blocked')) : error
  } finally {
    if (isCurrent()) stopSpeaking()
  }
}

export function stopSpeaking(): void {
  stop?.()
  stop = null
}

/** One text as a file. */
export function requestSpeech(
  input: string,
  { model, voice, speed }: Voice,
  format: 'wav' | 'mp3',
  signal?: AbortSignal,
): Promise<Response> {
  const body = { model, input, voice, response_format: format, ...(speed === 1 ? {} : { speed }) }
  return send('POST /v1/audio/speech', { body }, { signal })
}

type Samples = Int16Array | Float32Array

async function* readAudio(response: Response): AsyncGenerator<Samples> {
  const reader = response.body?.getReader()
  if (reader === undefined) return
  try {
    const { value: first } = await reader.read()
    if (first === undefined) return
    if (String.fromCharCode(...first.subarray(0, 4)) !== 'RIFF') {
      yield await decodeWhole(first, reader)
      return
    }
    const output = createSampleOutput(rateHz, () => {})
    const decoder = createWavDecoder(output)
    let bytes: Uint8Array | undefined = first
    while (bytes !== undefined) {
      yield* decoder.decode(bytes)
      bytes = (await reader.read()).value
    }
    yield* output.end()
  } finally {
    await reader.cancel().catch(() => {})
  }
}

/** Some upstreams write one format, whatever was asked for. */
async function decodeWhole(
  first: Uint8Array<ArrayBuffer>,
  reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>,
): Promise<Samples> {
  const parts = [first]
  let bytes = first.length
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    bytes += part.value.length
    if (bytes > wholeBytesMax) throw new Error(textOf('voice.too_large'))
    parts.push(part.value)
  }
  const decoder = new OfflineAudioContext(1, 1, rateHz)
  const decoded = await decoder.decodeAudioData(await new Blob(parts).arrayBuffer())
  return decoded.getChannelData(0)
}
