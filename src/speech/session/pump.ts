import type { AudioDecoder } from '#speech/decoders/decoder.ts'
import type { Recognition } from '#speech/recognition/recognition.ts'
import type { Inbox } from './inbox.ts'

/**
 * Takes what a client sent, decodes it as far as the engine has room, and passes it on. It is the
 * only one that touches decoder and recognition with audio, and never does much in one turn of the
 * event loop.
 */
export type Pump = {
  /** Something has come, or there is room again. */
  wake(): void
  stop(): void
  /** Audio that was decoded and passed on. */
  decodedMs(): number
}

export type PumpDeps = {
  readonly inbox: Inbox
  readonly decoder: AudioDecoder
  readonly recognition: Recognition
  /** False holds it up until the next `wake`. */
  readonly mayGoOn: () => boolean
  /** Something was taken from the inbox. */
  readonly took: () => void
  /** Everything up to the end was passed on. */
  readonly reachedEnd: () => void
  /** What the decoder threw; it is over then. */
  readonly failed: (error: unknown) => void
}

/** Pieces of at most 200 ms, and steps without any, in one turn of the event loop. */
const stepsPerTurn = 16

export function createPump(deps: PumpDeps): Pump {
  const { inbox, decoder, recognition } = deps
  let samples = 0
  let source: Iterator<Int16Array> | null = null
  let isEnding = false
  let isRunning = false
  let isStopped = false
  let planned: ReturnType<typeof setImmediate> | null = null

  /** Whether there may be more to do at once. */
  function step(): boolean {
    if (source !== null) return passOn(source)
    const item = inbox.take()
    if (item === null) return false
    switch (item.type) {
      case 'audio':
        source = decoder.decode(item.bytes)[Symbol.iterator]()
        break
      case 'finalize':
        recognition.finalize(item.id)
        break
      case 'end':
        isEnding = true
        source = decoder.end()[Symbol.iterator]()
    }
    deps.took()
    return true
  }

  function passOn(pieces: Iterator<Int16Array>): boolean {
    if (recognition.writableMs() <= 0) return false
    const next = pieces.next()
    if (!next.done) {
      if (next.value.length === 0) return true
      samples += next.value.length
      recognition.write(next.value)
      return true
    }
    source = null
    if (!isEnding) return true
    isStopped = true
    deps.reachedEnd()
    return false
  }

  function run(): void {
    planned = null
    // Writing may make room and so wake us while we write.
    if (isRunning || isStopped) return
    isRunning = true
    try {
      let steps = 0
      while (!isStopped && deps.mayGoOn() && step()) {
        if (++steps < stepsPerTurn) continue
        planned = setImmediate(run)
        break
      }
    } catch (error) {
      isStopped = true
      deps.failed(error)
    } finally {
      isRunning = false
    }
  }

  return {
    wake() {
      if (planned === null) run()
    },
    stop() {
      isStopped = true
      if (planned !== null) clearImmediate(planned)
    },
    decodedMs: () => Math.round((samples * 1000) / recognition.sampleRateHz),
  }
}
