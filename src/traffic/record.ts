import { type Static, Type } from '@sinclair/typebox'
import { instantExample, nullable } from '#api/shapes.ts'
import { upstreamExample, upstreamRecord } from '#models/upstream-record.ts'
import type { Traffic } from './merge.ts'
import { callPhases, listedCallsMax } from './report.ts'

const count = (description: string) => Type.Integer({ description, minimum: 0 })
const milliseconds = (description: string) => Type.Integer({ description, minimum: 0 })

const phase = Type.Union(
  callPhases.map((name) => Type.Literal(name)),
  {
    description:
      '`waiting`: for an upstream with capacity; `started`: sent, without output so far; `streaming`; `whole`: the upstream sends a whole response.',
  },
)

const runningCall = Type.Object({
  request_id: Type.String({ description: 'As in `x-request-id` and the log.' }),
  user: Type.Object({
    id: Type.String({ format: 'uuid' }),
    name: nullable(Type.String(), 'Null for a user who has never signed in.'),
  }),
  api_key_id: nullable(Type.String(), 'Null with another credential.'),
  model: Type.String({ description: 'The name in the request.' }),
  agent_id: nullable(Type.String(), 'The agent that this name means.'),
  surface: nullable(
    Type.Union([Type.Literal('responses'), Type.Literal('messages')]),
    'The API of the request.',
  ),
  upstream: nullable(Type.String(), 'Null while it waits.'),
  phase,
  elapsed_ms: milliseconds('Since the call began.'),
  first_event_ms: nullable(Type.Integer(), 'From the call to its first output; null before.'),
  output_chars: count('Characters of output so far.'),
  retries: count('Attempts after the first one.'),
  worker: Type.String({ description: 'The process that runs it, as in the log.' }),
})

export const trafficRecord = Type.Object(
  {
    object: Type.Literal('traffic'),
    at: Type.String({ format: 'date-time', description: 'The time of the report, in UTC.' }),
    workers: Type.Object({
      reporting: count('Workers whose traffic is included.'),
      missing: count('Workers that did not report within a second.'),
    }),
    running: count('Generations in progress.'),
    phases: Type.Object(
      Object.fromEntries(
        callPhases.map((name) => [name, count(`Of these, \`${name}\`.`)]),
      ) as Record<(typeof callPhases)[number], ReturnType<typeof count>>,
    ),
    websockets: count('Open WebSockets, speech sessions included.'),
    calls: Type.Array(runningCall, {
      description: `Generations in progress, the longest running first; at most ${listedCallsMax}.`,
    }),
    queues: Type.Array(
      Type.Object({
        model: Type.String(),
        priority: Type.String(),
        waiting: count('Calls that wait for capacity.'),
      }),
      { description: 'Models with waiting calls, the longest queue first.' },
    ),
    upstreams: Type.Array(upstreamRecord, {
      description:
        'The upstreams of all workers: numbers are sums, states the worst, times the highest.',
    }),
  },
  { $id: 'Traffic' },
)
export type TrafficRecord = Static<typeof trafficRecord>

export function renderTraffic(
  traffic: Traffic,
  { at, names }: { at: Date; names: ReadonlyMap<string, string> },
): TrafficRecord {
  const { workers, running, phases, websockets, calls, queues, upstreams } = traffic
  return {
    object: 'traffic',
    at: at.toISOString(),
    workers,
    running,
    phases,
    websockets,
    calls: calls.map((call) => ({
      request_id: call.requestId,
      user: { id: call.userId, name: names.get(call.userId) ?? null },
      api_key_id: call.keyId,
      model: call.model,
      agent_id: call.agentId,
      surface: call.surface,
      upstream: call.upstream,
      phase: call.phase,
      elapsed_ms: call.elapsedMs,
      first_event_ms: call.firstEventMs,
      output_chars: call.outputChars,
      retries: call.retries,
      worker: call.worker,
    })),
    queues: [...queues],
    upstreams: [...upstreams],
  }
}

export const trafficExample: TrafficRecord = {
  object: 'traffic',
  at: instantExample,
  workers: { reporting: 2, missing: 0 },
  running: 4,
  phases: { waiting: 1, started: 0, streaming: 3, whole: 0 },
  websockets: 2,
  calls: [
    {
      request_id: 'req_0a1b2c3d4e5f6g7h8j9k0m1n2p',
      user: { id: '5f2b1c9e-7a34-8d60-9e11-c4a8b7d20f35', name: 'ann' },
      api_key_id: null,
      model: 'llama-3.3-70b',
      agent_id: null,
      surface: 'responses',
      upstream: 'gpu-1',
      phase: 'streaming',
      elapsed_ms: 8_420,
      first_event_ms: 240,
      output_chars: 2_310,
      retries: 0,
      worker: '4711',
    },
  ],
  queues: [{ model: 'llama-3.3-70b', priority: 'interactive', waiting: 1 }],
  upstreams: [upstreamExample],
}
