import type { EngineConfig } from '#config/schema.ts'
import type { Engine, EngineOpenOptions } from '#speech/engine.ts'
import type { Log } from '#telemetry/log.ts'
import { bytesOf, createAudioFrames } from './audio-frames.ts'
import { type DeepgramResults, readResults } from './deepgram-results.ts'
import { createServerEngine, type ServerLine, type ServerProtocol } from './server-session.ts'
import { readSeconds } from './words.ts'

const sampleRateHzUsual = 16_000
const frameMs = 100
/** What the server takes at the least for `utterance_end_ms`. */
const utteranceEndMsMin = 1_000
/** Key terms that one session may have. */
const keytermsMax = 100
/** So much at the end may be left without a result: there is no word in it. */
const tailMs = 100

type Patience = {
  /** The server ends a session that is silent for ten seconds. */
  readonly keepAliveMs: number
  /** `Finalize` may stay without an answer where there was next to nothing to finalize. */
  readonly finalizeMs: number
}

const usualPatience: Patience = { keepAliveMs: 4_000, finalizeMs: 3_000 }

/** Servers with Deepgram's /v1/listen. */
export function createDeepgramEngine(
  config: EngineConfig,
  deps: { log: Log },
  patience: Patience = usualPatience,
): Engine {
  const sampleRateHz = config.sampleRateHz ?? sampleRateHzUsual
  return createServerEngine({
    config,
    log: deps.log,
    features: { partials: true, words: true, confidence: true, finalize: true },
    sampleRateHz,
    address: (options) => ({
      usualPath: '/v1/listen',
      query: queryOf(config, sampleRateHz, options),
      headers: config.key === undefined ? {} : { authorization: `Token ${config.key}` },
    }),
    protocol: (line) => createDeepgramProtocol(line, sampleRateHz, patience),
  })
}

function queryOf(config: EngineConfig, sampleRateHz: number, options: EngineOpenOptions) {
  const query: [string, string][] = [
    ['language', options.language],
    ['encoding', 'linear16'],
    ['sample_rate', String(sampleRateHz)],
    ['channels', '1'],
    ['interim_results', 'true'],
    ['punctuate', 'true'],
    ['endpointing', String(options.endpointingMs)],
    ['utterance_end_ms', String(Math.max(utteranceEndMsMin, options.endpointingMs))],
    ['vad_events', 'true'],
  ]
  if (config.model !== undefined) query.push(['model', config.model])
  // Other models refuse a request that has key terms.
  if (config.model?.startsWith('nova-3') === true) {
    for (const term of options.vocabulary.slice(0, keytermsMax)) query.push(['keyterm', term])
  }
  return query
}

function createDeepgramProtocol(
  line: ServerLine,
  sampleRateHz: number,
  patience: Patience,
): ServerProtocol {
  const told = createTelling(line)
  const frames = createAudioFrames({
    sampleRateHz,
    frameMs,
    send(samples) {
      told.sentMs += (samples.length * 1000) / sampleRateHz
      keepAlive.put()
      line.sendBytes(bytesOf(samples))
    },
  })
  const keepAlive = createIdleTimer(patience.keepAliveMs, () =>
    line.sendJson({ type: 'KeepAlive' }),
  )
  let isClosing = false
  let finalizing: Timer | null = null
  const finalized = () => {
    if (finalizing === null) return
    clearTimeout(finalizing)
    finalizing = null
    line.emit({ type: 'finalized' })
  }
  const giveUpFinalize = () => {
    // Text that was shown must still become a final.
    if (told.isOpen) finalizing = setTimeout(giveUpFinalize, patience.finalizeMs)
    else finalized()
  }
  return {
    opened() {
      keepAlive.put()
      line.ready()
    },
    frame(frame) {
      switch (frame['type']) {
        case 'Results': {
          const results = readResults(frame)
          if (results === null) return line.fail('broken', 'results without an alternative')
          told.results(results)
          if (results.fromFinalize) finalized()
          break
        }
        case 'SpeechStarted': {
          const atMs = readSeconds(frame['timestamp'])
          if (atMs !== null) line.emit({ type: 'speech-start', atMs })
          break
        }
        case 'Metadata':
          // Some servers send one at the beginning as well.
          if (!isClosing) break
          finalized()
          line.ended()
          break
        case 'Error':
          line.fail('broken', `the server says: ${frame['description'] ?? frame['message']}`)
          break
        case 'Warning':
          line.note('a speech server warns', String(frame['description'] ?? frame['message']))
          break
      }
    },
    write: (samples) => frames.write(samples),
    finalize() {
      frames.flush()
      if (told.isCovered()) return line.soon(() => line.emit({ type: 'finalized' }))
      line.sendJson({ type: 'Finalize' })
      finalizing = setTimeout(giveUpFinalize, patience.finalizeMs)
    },
    end() {
      frames.flush()
      isClosing = true
      line.sendJson({ type: 'CloseStream' })
    },
    isAnswered: () => told.isCovered(tailMs),
    stop() {
      frames.stop()
      keepAlive.stop()
      if (finalizing !== null) clearTimeout(finalizing)
    },
  }
}

/** Results as events, and how far they reach. */
function createTelling(line: ServerLine) {
  let processedMs = 0
  let finalMs = 0
  const telling = {
    sentMs: 0,
    /** Whether a text was shown that no final has followed yet. */
    isOpen: false,
    /** Whether finals reach to the end of what was sent. */
    isCovered: (slackMs = 0) => !telling.isOpen && finalMs + slackMs >= Math.floor(telling.sentMs),
    results({ text, isFinal, speechFinal, words, confidence, ...times }: DeepgramResults) {
      const { startMs, endMs } = { startMs: words[0]?.startMs, endMs: words.at(-1)?.endMs }
      const span = { text, startMs: startMs ?? times.startMs, endMs: endMs ?? times.endMs }
      if (text !== '' && isFinal) {
        line.emit({ type: 'final', ...span, words, confidence, speechFinal })
      } else if (text !== '') {
        line.emit({ type: 'partial', ...span })
      } else if (isFinal) {
        line.emit({ type: 'utterance-dropped' })
      }
      if (isFinal) finalMs = Math.max(finalMs, times.endMs)
      telling.isOpen = isFinal ? false : telling.isOpen || text !== ''
      const reachedMs = Math.min(times.endMs, Math.round(telling.sentMs))
      if (reachedMs <= processedMs) return
      processedMs = reachedMs
      line.emit({ type: 'progress', processedMs, estimated: false })
    },
  }
  return telling
}

/** Does something whenever it was not put off for so long. */
function createIdleTimer(idleMs: number, act: () => void) {
  let putAt = 0
  let timer: Timer | null = null
  let isStopped = false
  const arm = (ms: number) => {
    timer = setTimeout(check, ms)
  }
  const check = () => {
    const restMs = putAt + idleMs - performance.now()
    if (restMs > 0) return arm(restMs)
    putAt = performance.now()
    act()
    if (!isStopped) arm(idleMs)
  }
  return {
    put() {
      putAt = performance.now()
      if (timer === null && !isStopped) arm(idleMs)
    },
    stop() {
      isStopped = true
      if (timer !== null) clearTimeout(timer)
    },
  }
}
