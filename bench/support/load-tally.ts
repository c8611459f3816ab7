import { type CpuSample, cpuBetween, readCpu } from './cpu-use.ts'
import { Histogram } from './histogram.ts'
import type { LoadProgress, LoadReport } from './load-job.ts'
import { type Faults, noFaults } from './stream-check.ts'

/** Counters of the whole job. */
export type Tally = {
  readonly faults: Faults
  readonly firstTokenMs: Histogram
  readonly wholeMs: Histogram
  readonly latenessMs: Histogram
  readonly gapMs: Histogram
  readonly gapBeyondMs: Histogram
  requests: number
  events: number
  tokens: number
  heartbeats: number
  lateTokens: number
  refused: number
  /** Streams with a token, and the time of the latest first token. */
  begun: number
  lastBegunAtMs: number
  streamsOpen: number
  inWindow: boolean
}

/** Counters at one end of the window. */
export type TallySample = {
  readonly atMs: number
  readonly requests: number
  readonly tokens: number
  readonly cpu: CpuSample | null
}

export function newTally(): Tally {
  return {
    faults: noFaults(),
    firstTokenMs: new Histogram(),
    wholeMs: new Histogram(),
    latenessMs: new Histogram(),
    gapMs: new Histogram(),
    gapBeyondMs: new Histogram(),
    requests: 0,
    events: 0,
    tokens: 0,
    heartbeats: 0,
    lateTokens: 0,
    refused: 0,
    begun: 0,
    lastBegunAtMs: 0,
    streamsOpen: 0,
    inWindow: false,
  }
}

export function takeSample(tally: Tally, measurePid: number | null): TallySample {
  const { requests, tokens } = tally
  const cpu = measurePid === null ? null : readCpu(measurePid)
  return { atMs: performance.now(), requests, tokens, cpu }
}

export function makeProgress(tally: Tally, startedMs: number): LoadProgress {
  const { streamsOpen, inWindow, tokens, heartbeats, faults } = tally
  const elapsedMs = Math.round(performance.now() - startedMs)
  return { progress: { elapsedMs, streamsOpen, inWindow, tokens, heartbeats, faults } }
}

export function makeReport(
  tally: Tally,
  readings: {
    readonly startedMs: number
    readonly opened: TallySample
    readonly closed: TallySample
  },
): LoadReport {
  const { startedMs, opened, closed } = readings
  const { requests, events, tokens, heartbeats, lateTokens, refused, faults } = tally
  const isMeasured = opened.cpu !== null && closed.cpu !== null
  const cpu = isMeasured ? cpuBetween(opened.cpu, closed.cpu) : null
  return {
    elapsedMs: performance.now() - startedMs,
    requests,
    events,
    tokens,
    heartbeats,
    lateTokens,
    refused,
    begun: { streams: tally.begun, lastAfterMs: Math.max(0, tally.lastBegunAtMs - startedMs) },
    faults,
    window: {
      ms: closed.atMs - opened.atMs,
      requests: closed.requests - opened.requests,
      tokens: closed.tokens - opened.tokens,
      cpuMs: cpu?.totalMs ?? null,
      cpu,
    },
    firstTokenMs: tally.firstTokenMs.quantiles(),
    wholeMs: tally.wholeMs.quantiles(),
    latenessMs: tally.latenessMs.quantiles(),
    gapMs: tally.gapMs.quantiles(),
    gapBeyondMs: tally.gapBeyondMs.quantiles(),
  }
}
