import type { OpenedSpeech, SpeakInput } from '#inference/speak.ts'
import type { Adapter, UpstreamModel } from '#inference/upstream.ts'
import type { CancelSignal } from '#lib/cancellation.ts'
import { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import { speakParts } from './decode.ts'
import { splitSentences } from './encode.ts'
import { packageFault, voiceFiles } from './package.ts'
import { SpeakerProcess } from './speaker-process.ts'
import { type OutputFormat, outputFormats, type Voice, voices } from './wire.ts'

const modelName = 'flite'

type FliteSettings = {
  readonly packageFolder: string
  readonly processesMax: number
  readonly queueMax: number
}

export type FliteDeps = {
  readonly settings: FliteSettings
  /** The environment of the processes. */
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly log: Pick<Log, 'warn'>
}

/** Speaks with the voices on this machine, each text in a process that is kept for a while. */
export type Flite = Adapter & {
  /** Speaks a word; throws if that does not work. */
  verify(): Promise<void>
  /** Kills the processes; running requests fail. */
  close(): Promise<void>
}

type IdleSpeaker = {
  readonly speaker: SpeakerProcess
  readonly timer: ReturnType<typeof setTimeout>
}

/** Idle processes are stopped after this time. */
const idleMs = 60_000
/** The `Retry-After` of a full queue. */
const retryAfterS = 5

const contentTypes: Readonly<Record<OutputFormat, string>> = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
}

export function createFlite({ settings, environment, log }: FliteDeps): Flite {
  const busy = new Set<SpeakerProcess>()
  /** Those that have exited meanwhile stay until the next text. */
  const idle: IdleSpeaker[] = []
  const waiting = new Set<() => void>()

  async function acquire(signal: CancelSignal): Promise<SpeakerProcess> {
    signal.throwIfAborted()
    return busy.size < settings.processesMax ? occupy() : waitForTurn(signal)
  }

  async function occupy(): Promise<SpeakerProcess> {
    const files = voiceFiles(settings.packageFolder)
    const speaker = takeIdle() ?? new SpeakerProcess({ files, environment, log })
    busy.add(speaker)
    return speaker
  }

  function takeIdle(): SpeakerProcess | null {
    for (let last = idle.pop(); last !== undefined; last = idle.pop()) {
      clearTimeout(last.timer)
      if (!last.speaker.hasExited) return last.speaker
    }
    return null
  }

  function waitForTurn(signal: CancelSignal): Promise<SpeakerProcess> {
    if (waiting.size >= settings.queueMax) throw full()
    return new Promise((resolve, reject) => {
      const stop = () => {
        waiting.delete(start)
        reject(signal.reason)
      }
      const start = () => {
        signal.removeEventListener('abort', stop)
        resolve(occupy())
      }
      signal.addEventListener('abort', stop, { once: true })
      waiting.add(start)
    })
  }

  /** A process in the middle of a text is killed, which frees its processor at once. */
  function release(speaker: SpeakerProcess, isReusable: boolean): void {
    busy.delete(speaker)
    if (isReusable) idle.push({ speaker, timer: setTimeout(() => speaker.kill(), idleMs) })
    else speaker.kill()
    const [next] = waiting
    if (next === undefined) return
    waiting.delete(next)
    next()
  }

  async function speak(input: SpeakInput, signal: CancelSignal): Promise<OpenedSpeech> {
    const fault = packageFault(settings.packageFolder)
    if (fault !== null) throw fault
    const { format, voice, speed = 1 } = { ...input, ...readInput(input) }
    const sentences = splitSentences(input.text)
    if (sentences.length === 0) throw refused('input', 'The text has no words in Latin letters.')
    const speaker = await acquire(signal)
    let isReleased = false
    const end = (isReusable: boolean) => {
      if (isReleased) return
      isReleased = true
      signal.removeEventListener('abort', cancel)
      release(speaker, isReusable)
    }
    const cancel = () => end(false)
    signal.addEventListener('abort', cancel, { once: true })
    const parts = speakParts(speaker, { sentences, voice, format, speed })
    const next = async () => {
      try {
        const { done, value } = await parts.next()
        if (!done) return value
        end(true)
        return null
      } catch (error) {
        end(false)
        throw signal.aborted ? signal.reason : error
      }
    }
    const first = await next()
    if (first === null) throw refused('input', 'The text has no sound.')
    return { contentType: contentTypes[format], first, next, cancel }
  }

  return {
    // biome-ignore lint/correctness/useYield: it only throws
    async *generate(_, { model }) {
      throw new AppError('upstream_refused', `The model "${model}" does not generate text.`)
    },

    async listModels() {
      return packageFault(settings.packageFolder) === null ? [listed] : []
    },

    speak: (input, { signal }) => speak(input, signal),

    async verify() {
      const input = { text: 'Good morning.', voice: voices[0], format: 'mp3' } as const
      const { next } = await speak(input, new AbortController().signal)
      while ((await next()) !== null);
    },

    async close() {
      for (const { timer } of idle) clearTimeout(timer)
      const speakers = [...busy, ...idle.map(({ speaker }) => speaker)]
      await Promise.all(speakers.map((speaker) => speaker.stop()))
    },
  }
}

const listed: UpstreamModel = {
  id: modelName,
  mode: 'speak',
  voices,
  created: null,
  ownedBy: null,
  contextWindow: null,
}

function readInput({ voice, format }: SpeakInput): { voice: Voice; format: OutputFormat } {
  const wanted = typeof voice === 'string' ? voice : voice.id
  const known = voices.find((each) => each === wanted)
  if (known === undefined) {
    throw refused('voice', `The local voice speaks as ${voices.join(', ')}, not "${wanted}".`)
  }
  const output = outputFormats.find((each) => each === format)
  if (output === undefined) {
    throw refused(
      'response_format',
      `The local voice writes ${outputFormats.join(', ')}, not ${format}.`,
    )
  }
  return { voice: known, format: output }
}

function refused(param: string, message: string): AppError {
  return new AppError('invalid_request', message, { param })
}

function full(): AppError {
  return new AppError('upstream_overloaded', 'Too many texts wait for the local voice.', {
    retryAfterS,
  })
}
