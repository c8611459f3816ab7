/**
 * The process of one speech model, started by `recogniser.ts`: the runtime is native code that blocks
 * and may crash. It serves one request at a time until the gateway disconnects or kills it.
 */
import { serveGateway } from '#lib/compute-process.ts'
import type { SpeechModel } from './model-files.ts'
import { type ChildResult, type FromChild, localRateHz, type ToChild } from './wire.ts'

/** The parts of the runtime that are used. It is not a dependency, so its types are unavailable. */
type Runtime = { readonly OfflineRecognizer: new (config: RecognizerConfig) => Recognizer }

type Recognizer = {
  createStream(): Stream
  setConfig(config: RecognizerConfig): void
  decode(stream: Stream): void
  getResult(stream: Stream): {
    readonly text: string
    readonly tokens?: readonly string[]
    readonly timestamps?: readonly number[]
    readonly durations?: readonly number[]
  }
}

type Stream = {
  acceptWaveform(wave: { samples: Float32Array; sampleRate: number }): void
}

type RecognizerConfig = {
  readonly featConfig: { readonly sampleRate: number; readonly featureDim: number }
  readonly modelConfig: Readonly<Record<string, unknown>>
}

/**
 * Without so much silence after it, Whisper repeats short audio ("M M M M"). Of recorded single words,
 * 500 frames leave 105 % wrong, 800 frames 93 %, and the reference decoder with its 3,000 frames 95 %.
 */
const tailFrames = 800
const fullScale = 32_768

let recognizer: Recognizer | null = null
let configOf: (language: string) => RecognizerConfig = () => {
  throw new Error('no model is loaded')
}
let language = ''

serveGateway()

process.on('message', (message: ToChild) => {
  if (message.type === 'load') void load(message)
  else recognise(message)
})

async function load({ runtime, model, threads }: Extract<ToChild, { type: 'load' }>) {
  try {
    const loaded = (await import(runtime)) as { default: Runtime }
    configOf = (wanted) => recognizerConfig(model, threads, wanted)
    language = model.languages[0] ?? 'en'
    recognizer = new loaded.default.OfflineRecognizer(configOf(languageOf(model, language)))
    send({ type: 'loaded' })
  } catch (error) {
    send({ type: 'load-failed', detail: String(error) })
  }
}

function recognise(request: Extract<ToChild, { type: 'recognise' }>) {
  try {
    if (recognizer === null) throw new Error('the model is not loaded')
    if (request.language !== language) {
      recognizer.setConfig(configOf(request.language))
      language = request.language
    }
    send({ type: 'recognised', ...decode(recognizer, request.samples) })
  } catch (error) {
    send({ type: 'failed', detail: String(error) })
  }
}

function decode(from: Recognizer, samples: Int16Array): ChildResult {
  const stream = from.createStream()
  const floats = Float32Array.from(samples, (sample) => sample / fullScale)
  stream.acceptWaveform({ samples: floats, sampleRate: localRateHz })
  from.decode(stream)
  const { text, tokens = [], timestamps = [], durations = [] } = from.getResult(stream)
  return { text: text.trim(), tokens, starts: timestamps, durations }
}

function recognizerConfig(model: SpeechModel, threads: number, wanted: string): RecognizerConfig {
  const { tokens, files } = model
  const common = { tokens, numThreads: threads, provider: 'cpu', debug: 0 }
  const featConfig = { sampleRate: localRateHz, featureDim: 80 }
  if (files.kind === 'transducer') {
    const { encoder, decoder, joiner } = files
    const modelType = /nemo|parakeet/i.test(model.name) ? 'nemo_transducer' : 'transducer'
    return {
      featConfig,
      modelConfig: { ...common, transducer: { encoder, decoder, joiner }, modelType },
    }
  }
  const { encoder, decoder } = files
  const whisper = {
    encoder,
    decoder,
    language: languageOf(model, wanted),
    task: 'transcribe',
    tailPaddings: tailFrames,
    enableTokenTimestamps: 1,
  }
  return { featConfig, modelConfig: { ...common, whisper } }
}

/** A model of one language has no tokens for languages. */
function languageOf({ languages }: SpeechModel, wanted: string): string {
  return languages.length === 1 ? '' : wanted
}

function send(message: FromChild): void {
  process.send?.(message)
}
