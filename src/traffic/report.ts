import type { Inference } from '#inference/inference.ts'
import type { RunningCall } from '#inference/running-generation.ts'
import type { UpstreamRecord } from '#models/upstream-record.ts'

/** Calls that a worker lists, the longest running first; it counts all. */
export const listedCallsMax = 200

/** One generation in progress; plain data, which workers exchange. */
export type CallReport = {
  readonly requestId: string
  readonly userId: string
  readonly keyId: string | null
  readonly model: string
  readonly agentId: string | null
  readonly surface: 'responses' | 'messages' | null
  readonly upstream: string | null
  readonly phase: CallPhase
  readonly elapsedMs: number
  readonly firstEventMs: number | null
  readonly outputChars: number
  readonly retries: number
}

/** `waiting`: for an upstream with capacity; `started`: sent, no output yet; `streaming`; `whole`: not streamed. */
export const callPhases = ['waiting', 'started', 'streaming', 'whole'] as const
type CallPhase = (typeof callPhases)[number]

/** Calls that wait for capacity. */
export type QueueReport = {
  readonly model: string
  readonly priority: string
  readonly waiting: number
}

/** What one worker does now. */
export type TrafficReport = {
  readonly worker: string
  readonly running: number
  /** By phase. */
  readonly phases: Readonly<Record<CallPhase, number>>
  readonly websockets: number
  readonly calls: readonly CallReport[]
  readonly queues: readonly QueueReport[]
  readonly upstreams: readonly UpstreamRecord[]
}

export type ReportDeps = {
  readonly inference: Pick<Inference, 'runningCalls'>
  readonly waitingCalls: () => readonly (readonly [
    calls: number,
    model: string,
    priority: string,
  ])[]
  readonly sockets: { count(): number }
  readonly upstreams: () => readonly UpstreamRecord[]
}

export function reportTraffic({
  inference,
  waitingCalls,
  sockets,
  upstreams,
}: ReportDeps): TrafficReport {
  const phases = { waiting: 0, started: 0, streaming: 0, whole: 0 }
  const calls: CallReport[] = []
  let running = 0
  // The oldest come first: a set keeps the order of insertion.
  for (const call of inference.runningCalls()) {
    const phase = phaseOf(call)
    running++
    phases[phase]++
    if (calls.length < listedCallsMax) calls.push(reportCall(call, phase))
  }
  return {
    worker: String(process.pid),
    running,
    phases,
    websockets: sockets.count(),
    calls,
    queues: waitingCalls().map(([waiting, model, priority]) => ({ model, priority, waiting })),
    upstreams: upstreams(),
  }
}

function phaseOf({ record: { target, firstEventMs }, isStreamed }: RunningCall): CallPhase {
  if (target === null) return 'waiting'
  if (!isStreamed) return 'whole'
  return firstEventMs === null ? 'started' : 'streaming'
}

function reportCall({ record, elapsedMs, outputChars }: RunningCall, phase: CallPhase): CallReport {
  const { requestId, userId, keyId, model, agentId, surface, target, firstEventMs } = record
  return {
    requestId,
    userId,
    keyId,
    model,
    agentId,
    surface,
    upstream: target?.upstream.name ?? null,
    phase,
    elapsedMs: Math.round(elapsedMs),
    firstEventMs: firstEventMs === null ? null : Math.round(firstEventMs),
    outputChars,
    retries: record.retries,
  }
}
