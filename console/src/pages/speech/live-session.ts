import type {
  FinalTranscript,
  PartialTranscript,
  SpeechServerFrame,
} from '../../api/generated/types.ts'
import { AudioBuffer } from './audio-buffer.ts'

type Frame<Type> = Extract<SpeechServerFrame, { type: Type }>
export type SessionReady = Frame<'session_ready'>
export type SessionStats = Frame<'session_end'>['stats']
export type SessionFailure = Frame<'error'>['error'] | { readonly code: 'disconnected' }

/** Milliseconds since the recording began. */
export type Progress = {
  readonly capturedMs: number
  readonly receivedMs: number
  readonly processedMs: number
  readonly finalMs: number
  /** Dropped by the page, because the gateway was away for too long. */
  readonly lostMs: number
}

export type LiveSessionOptions = {
  /** Address and query of the WebSocket. */
  readonly url: () => string
  readonly sampleRateHz: number
  /** Audio that is kept until it has its final text. */
  readonly bufferMs?: number
  readonly listener: {
    ready(frame: SessionReady): void
    /** The gateway is away; the page records on. */
    reconnecting(): void
    /** Times count from the beginning of the recording; `id` is the segment. */
    transcript(frame: PartialTranscript | FinalTranscript, id: string): void
    /** Segments without a final will not get one: another session repeats their audio. */
    restarted(): void
    warning(frame: Frame<'warning'>): void
    progress(progress: Progress): void
    /** Of one session of the gateway; a recording may need several. */
    stats(stats: SessionStats, startMs: number): void
    ended(failure: SessionFailure | null): void
  }
}

export type LiveSession = ReturnType<typeof openLiveSession>

const bytesPerSample = 2
const defaultBufferMs = 120_000
const retryMsMin = 250
const retryMsMax = 4_000
/** How long the page tries to reach the gateway again. */
const awayMsMax = 120_000
/** Errors after which another session continues the recording. */
const restartCodes: readonly string[] = ['draining', 'max_session', 'idle_timeout']
/** Errors that pass while a recording goes on. */
const busyCodes: readonly string[] = ['capacity', 'unavailable']
/** Sockets that may reach a worker without the session before another session begins. */
const resumeAttempts = 3

/**
 * A recording over `/v1/stt`. A socket that breaks is replaced by one that resumes the session; if that
 * is not possible, a new session gets all audio that has no final text yet.
 */
export function openLiveSession({ url, sampleRateHz, listener, ...options }: LiveSessionOptions) {
  const bytesPerMs = (sampleRateHz * bytesPerSample) / 1000
  const audio = new AudioBuffer((options.bufferMs ?? defaultBufferMs) * bytesPerMs)
  let socket: WebSocket | null = null
  /** Null: the next socket begins a session. */
  let ready: SessionReady | null = null
  let sessionCount = 0
  let lastSeq = 0
  let base = 0
  let sentTo = 0
  let creditTo = 0
  let receivedTo = 0
  let processedTo = 0
  let finalTo = 0
  let isPaused = false
  let isEnding = false
  let isEndSent = false
  let hasEnded = false
  let isOver = false
  let isLive = false
  let failure: Frame<'error'>['error'] | null = null
  let awaySince = 0
  let retryMs = retryMsMin
  let timer: ReturnType<typeof setTimeout> | undefined
  let keepAlive: ReturnType<typeof setInterval> | undefined

  const toMs = (bytes: number) => bytes / bytesPerMs
  const toBytes = (ms: number) => Math.floor((ms * sampleRateHz) / 1000) * bytesPerSample
  const report = () =>
    listener.progress({
      capturedMs: toMs(audio.end),
      receivedMs: toMs(receivedTo),
      processedMs: toMs(processedTo),
      finalMs: toMs(finalTo),
      lostMs: toMs(audio.lost),
    })
  const control = (message: object) => {
    if (isLive) socket?.send(JSON.stringify(message))
  }

  function connect(): void {
    failure = null
    if (ready === null) {
      // What was dropped cannot be sent; the rest has no final yet.
      base = Math.max(finalTo, audio.start())
      sentTo = base
      lastSeq = 0
    }
    const opened = new WebSocket(url())
    socket = opened
    opened.onopen = () => opened.send(JSON.stringify(handshake()))
    opened.onmessage = ({ data }) => {
      if (socket === opened) receive(JSON.parse(String(data)) as SpeechServerFrame)
    }
    opened.onclose = ({ code }) => {
      if (socket === opened) onClose(code)
    }
  }

  const handshake = () => ({
    type: 'session_start',
    protocol: 1,
    audio: { container: 'none', channels: 1 },
    options: { flow: 'credit', max_partial_hz: 10 },
    metadata: { app: 'console' },
    ...(ready?.resume_token && {
      resume: { session_id: ready.session_id, token: ready.resume_token, last_seq: lastSeq },
    }),
  })

  function receive(frame: SpeechServerFrame): void {
    lastSeq = Math.max(lastSeq, frame.seq)
    const startMs = toMs(base)
    switch (frame.type) {
      case 'session_ready':
        onReady(frame)
        break
      case 'audio_ack':
        creditTo = base + frame.credit_bytes
        receivedTo = base + frame.received_bytes
        processedTo = base + toBytes(frame.processed_ms)
        finalTo = Math.max(finalTo, base + toBytes(frame.final_ms))
        audio.release(finalTo)
        report()
        pump()
        break
      case 'transcript': {
        const shift = { start: frame.start + startMs / 1000, end: frame.end + startMs / 1000 }
        // Finals come in order: what they cover is not sent to another session.
        if (frame.is_final) finalTo = Math.max(finalTo, base + toBytes(frame.end * 1000))
        listener.transcript({ ...frame, ...shift }, `${sessionCount}.${frame.segment}`)
        break
      }
      case 'warning':
        listener.warning(frame)
        break
      case 'error':
        failure = frame.error
        if (frame.stats !== undefined) onStats(frame.stats)
        break
      case 'session_end':
        onStats(frame.stats)
        hasEnded = true
        break
    }
  }

  function onStats(stats: SessionStats): void {
    // All audio that the session got is accounted for.
    finalTo = Math.max(finalTo, base + toBytes(stats.audio_ms))
    receivedTo = Math.max(receivedTo, finalTo)
    processedTo = Math.max(processedTo, finalTo)
    listener.stats(stats, toMs(base))
    ready = null
    report()
  }

  function onReady(frame: SessionReady): void {
    if (frame.resumed) sentTo = base + frame.received_bytes
    else sessionCount += 1
    ready = frame
    creditTo = base + (frame.flow.credit_bytes ?? Number.POSITIVE_INFINITY)
    awaySince = 0
    retryMs = retryMsMin
    isLive = true
    isEndSent = false
    clearInterval(keepAlive)
    // A paused recording sends nothing else.
    keepAlive = setInterval(() => control({ type: 'keepalive' }), frame.limits.idle_timeout_ms / 3)
    listener.ready(frame)
    if (isPaused) control({ type: 'finalize', id: 'pause' })
    pump()
  }

  /** Sends what the gateway accepts, then what was asked meanwhile. */
  function pump() {
    if (!isLive || socket === null) return
    while (sentTo < Math.min(audio.end, creditTo)) {
      const bytes = audio.read(sentTo, creditTo - sentTo)
      if (bytes.length === 0) return restart()
      socket.send(bytes as Uint8Array<ArrayBuffer>)
      sentTo += bytes.length
    }
    if (!isEnding || isEndSent || sentTo < audio.end) return
    isEndSent = true
    control({ type: 'session_end' })
  }

  /** The session cannot be continued: the buffer has lost audio that it lacks. */
  function restart(): void {
    forget()
    socket?.close(1000)
    socket = null
    connect()
  }

  function forget(): void {
    isLive = false
    ready = null
    listener.restarted()
  }

  function onClose(code: number) {
    isLive = false
    socket = null
    if (hasEnded) return finish(null)
    if (failure !== null) {
      const { code: reason } = failure
      if (reason === 'resume_failed') return away(true)
      const wasLive = sessionCount > 0
      if (wasLive && busyCodes.includes(reason)) return away(false)
      if (!wasLive || !restartCodes.includes(reason)) return finish(failure)
      forget()
      return away(false)
    }
    // Closed without an error: the network, or a gateway that was killed.
    if (ready?.resume_token === null || code === 1000 || code === 1001) forget()
    away(false)
  }

  /** `isUnknown`: the worker that was reached does not have the session; another one may. */
  function away(isUnknown: boolean) {
    if (awaySince === 0) {
      awaySince = performance.now()
      listener.reconnecting()
    }
    const awayMs = performance.now() - awaySince
    if (awayMs > awayMsMax) return finish({ code: 'disconnected' })
    const attempts = Math.log2(retryMs / retryMsMin)
    if (isUnknown && attempts >= resumeAttempts) forget()
    else if (ready !== null && awayMs > ready.limits.resume_ms) forget()
    timer = setTimeout(connect, retryMs)
    retryMs = Math.min(retryMs * 2, retryMsMax)
  }

  function finish(reason: SessionFailure | null): void {
    if (isOver) return
    isOver = true
    isLive = false
    clearTimeout(timer)
    clearInterval(keepAlive)
    listener.ended(reason)
  }

  connect()
  return {
    send(bytes: Uint8Array): void {
      audio.push(bytes)
      pump()
      report()
    },
    /** Asks for the finals of what was said; nothing is sent until `resume`. */
    pause(): void {
      isPaused = true
      control({ type: 'finalize', id: 'pause' })
    },
    resume(): void {
      isPaused = false
    },
    /** Sends the rest; `ended` follows the last finals. */
    end(): void {
      isEnding = true
      pump()
    },
    capturedMs: () => toMs(audio.end),
    /** Ends it now, without the last finals. */
    abort(): void {
      isOver = true
      clearTimeout(timer)
      clearInterval(keepAlive)
      socket?.close(1000)
      socket = null
    },
  }
}
