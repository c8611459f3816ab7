import { parseJson } from '#lib/json.ts'
import {
  createNumberRecogniser,
  type SpokenWord,
  sampleRateHz,
} from '#test/support/spoken-numbers.ts'
import { type Peer, type PeerConnection, startPeer } from './peer.ts'

/** A Deepgram server that recognises spoken numbers, later than it receives them. */
export type SlowPeer = Peer & {
  /** The most audio that a connection had received and not recognised. */
  arrearsMsMax(): number
}

/** The behaviour of one connection. */
export type SlowScript = {
  /** Audio recognised at once, after a pause of `pauseMs`. */
  readonly takeMs: number
  readonly pauseMs: number
  /** A first pause of this length, as for loading a model; infinite: it recognises nothing. */
  readonly firstPauseMs?: number
  /** Meanwhile it sends a frame or a ping in this interval. */
  readonly life?: { readonly kind: 'frame' | 'ping'; readonly everyMs: number }
  /** `Finalize` is refused as by WhisperLiveKit. */
  readonly refusesFinalize?: boolean
}

type Job = Int16Array | 'Finalize' | 'CloseStream'

const utteranceWords = 6
const pollMs = 5

/** `scripts`: one per connection, in order; the last one also for all further connections. */
export function startSlowPeer(scripts: readonly [SlowScript, ...SlowScript[]]): SlowPeer {
  const listeners = new Map<PeerConnection, SlowListener>()
  const peer = startPeer({
    opened(connection) {
      const script = scripts[Math.min(listeners.size, scripts.length - 1)] ?? scripts[0]
      listeners.set(connection, new SlowListener(connection, script))
    },
    text(connection, text) {
      listeners.get(connection)?.command(text)
    },
    binary(connection, bytes) {
      listeners.get(connection)?.add(new Int16Array(Uint8Array.from(bytes).buffer))
    },
  })
  return {
    ...peer,
    arrearsMsMax: () => Math.max(...listeners.values().map(({ arrearsMsMax }) => arrearsMsMax)),
    async stop() {
      for (const listener of listeners.values()) listener.stop()
      await peer.stop()
    },
  }
}

class SlowListener {
  arrearsMsMax = 0
  readonly #connection: PeerConnection
  readonly #script: SlowScript
  readonly #recogniser = createNumberRecogniser()
  readonly #timers: Timer[] = []
  #jobs: Job[] = []
  #words: SpokenWord[] = []
  #receivedMs = 0
  #finalMs = 0

  constructor(connection: PeerConnection, script: SlowScript) {
    this.#connection = connection
    this.#script = script
    const { firstPauseMs = 0, life } = script
    if (life !== undefined) {
      const show = () => {
        if (life.kind === 'ping') connection.ping()
        else connection.send({ type: 'Metadata', request_id: 'r', duration: 0 })
      }
      this.#timers.push(setInterval(show, life.everyMs))
    }
    if (firstPauseMs < Number.POSITIVE_INFINITY) this.#workAfter(firstPauseMs)
  }

  add(samples: Int16Array): void {
    this.#receivedMs += toMs(samples.length)
    const arrearsMs = this.#receivedMs - this.#finalMs
    this.arrearsMsMax = Math.max(this.arrearsMsMax, arrearsMs)
    this.#jobs.push(samples)
  }

  command(text: string): void {
    const { type } = parseJson(text) as { type: string }
    if (type === 'Finalize' && this.#script.refusesFinalize === true) {
      this.#connection.send({ type: 'Error', description: 'Finalize is not supported' })
      this.#connection.close(4400)
    } else if (type === 'Finalize' || type === 'CloseStream') {
      this.#jobs.push(type)
    }
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer)
  }

  #workAfter(ms: number): void {
    this.#timers.push(setTimeout(() => this.#work(), ms))
  }

  #work(): void {
    if (this.#connection.closed !== null) return
    for (let takenMs = 0; takenMs < this.#script.takeMs; ) {
      const job = this.#jobs.shift()
      if (job === undefined) break
      if (typeof job === 'string') this.#answer(job)
      else takenMs += this.#recognise(job)
    }
    this.#workAfter(this.#jobs.length === 0 ? pollMs : this.#script.pauseMs)
  }

  #recognise(samples: Int16Array): number {
    this.#words.push(...this.#recogniser.process(samples))
    if (this.#words.length >= utteranceWords) this.#sendFinal(false)
    return toMs(samples.length)
  }

  #answer(command: 'Finalize' | 'CloseStream'): void {
    this.#sendFinal(command === 'Finalize')
    if (command === 'Finalize') return
    const duration = this.#recogniser.processedMs() / 1000
    this.#connection.send({ type: 'Metadata', request_id: 'r', duration })
    this.#connection.close(1000)
  }

  #sendFinal(fromFinalize: boolean): void {
    const words = this.#words.splice(0).map(({ word, startMs, endMs }) => ({
      word,
      start: startMs / 1000,
      end: endMs / 1000,
      confidence: 1,
      punctuated_word: word,
    }))
    const start = this.#finalMs / 1000
    this.#finalMs = this.#recogniser.processedMs()
    const transcript = words.map(({ word }) => word).join(' ')
    const version = this.#script.refusesFinalize === true ? 'whisperlivekit' : '1'
    this.#connection.send({
      type: 'Results',
      start: words[0]?.start ?? start,
      duration: (words.at(-1)?.end ?? this.#finalMs / 1000) - (words[0]?.start ?? start),
      is_final: true,
      speech_final: !fromFinalize,
      from_finalize: fromFinalize,
      channel: { alternatives: [{ transcript, confidence: 1, words }] },
      metadata: { model_info: { version } },
    })
  }
}

function toMs(samples: number): number {
  return (samples * 1000) / sampleRateHz
}
