import { orAfter } from '#lib/time-limit.ts'
import { createMetricRegistry, type MetricRegistry, type Sample } from './metrics.ts'

/** What a worker tells of itself to monitoring. */
export type GatewayMetrics = {
  generationEnded(ended: EndedGeneration): void
  /** `answer`: the class of its status, or that there was none. */
  upstreamAnswered(upstream: string, answer: string): void
  /** `reason`: the kind of the error. */
  callerRefused(reason: string): void
  /** What can be asked once everything is built. */
  watch(gauges: WatchedGauges): void
  render(): Promise<string>
  close(): void
}

type EndedGeneration = {
  /** Its name at the upstream, which the catalogue knows. */
  readonly model: string
  /** Empty where none was asked. */
  readonly upstream: string
  readonly outcome: string
  readonly retries: number
  readonly usage: {
    readonly inputTokens: number
    readonly cachedTokens: number
    readonly outputTokens: number
  } | null
  readonly firstEventMs: number | null
  readonly durationMs: number
}

type WatchedGauges = {
  generationsRunning(): number
  /** Responses that are stored as they run. */
  responsesRunning(): number
  socketsOpen(): number
  socketsBusy(): number
  speech(): {
    readonly connections: number
    readonly sessions: number
    readonly waiting: number
    readonly queuedBytes: number
    readonly unreadBytes: number
  }
  /** Of all workers, from the database. */
  jobs(): Promise<readonly CountedJobs[]>
}

type CountedJobs = {
  readonly queue: string
  /** Not begun. */
  readonly waiting: number
  readonly running: number
  /** Waiting after a try that failed. */
  readonly failed: number
}

const durationBoundsS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]
const firstEventBoundsS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
const lagBoundsS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
const lagEveryMs = 250
/** Models at upstreams, with each outcome. */
const seriesMax = 2_000
/** Whoever asks for figures does not wait for a database that is away. */
const databaseMs = 2_000
const millisPerSecond = 1_000
const microsPerSecond = 1_000_000

export function createGatewayMetrics({ worker }: { worker: string }): GatewayMetrics {
  const registry = createMetricRegistry({ seriesMax, labels: { worker } })
  const counting = countGenerations(registry)
  const answers = registry.counter({
    name: 'sluice_upstream_requests_total',
    help: 'Requests to upstreams of any kind, by the class of the answer.',
    labels: ['upstream', 'answer'],
  })
  const refusals = registry.counter({
    name: 'sluice_auth_failures_total',
    help: 'Callers that could not be authenticated.',
    labels: ['reason'],
  })
  addProcessGauges(registry)
  const stopLag = observeLag(registry)
  return {
    ...counting,
    upstreamAnswered: (upstream, answer) => answers.add(1, upstream, answer),
    callerRefused: (reason) => refusals.add(1, reason),
    watch: (gauges) => addWatchedGauges(registry, gauges),
    render: registry.render,
    close: stopLag,
  }
}

function countGenerations(registry: MetricRegistry): Pick<GatewayMetrics, 'generationEnded'> {
  const of = ['upstream', 'model']
  const ended = registry.counter({
    name: 'sluice_generations_total',
    help: 'Generations that are over.',
    labels: [...of, 'outcome'],
  })
  const retries = registry.counter({
    name: 'sluice_upstream_retries_total',
    help: 'Further tries of generations, by the upstream that was tried last.',
    labels: ['upstream'],
  })
  const tokens = registry.counter({
    name: 'sluice_tokens_total',
    help: 'Tokens as the upstreams count them; cached ones are among those that went in.',
    labels: [...of, 'kind'],
  })
  const durations = registry.histogram({
    name: 'sluice_generation_duration_seconds',
    help: 'From the call to the end.',
    labels: of,
    bounds: durationBoundsS,
  })
  const firstEvents = registry.histogram({
    name: 'sluice_first_event_seconds',
    help: 'From the call to the first output.',
    labels: of,
    bounds: firstEventBoundsS,
  })
  return {
    generationEnded({ model, upstream, outcome, usage, ...facts }) {
      ended.add(1, upstream, model, outcome)
      durations.observe(facts.durationMs / millisPerSecond, upstream, model)
      if (facts.firstEventMs !== null) {
        firstEvents.observe(facts.firstEventMs / millisPerSecond, upstream, model)
      }
      if (facts.retries > 0) retries.add(facts.retries, upstream)
      if (usage === null) return
      tokens.add(usage.inputTokens, upstream, model, 'input')
      tokens.add(usage.outputTokens, upstream, model, 'output')
      if (usage.cachedTokens > 0) tokens.add(usage.cachedTokens, upstream, model, 'cached')
    },
  }
}

function addWatchedGauges(registry: MetricRegistry, gauges: WatchedGauges): void {
  const add = (name: string, help: string, read: () => number) => {
    registry.gauge({ name: `sluice_${name}`, help }, read)
  }
  add('generations_running', 'Generations that run.', gauges.generationsRunning)
  add('responses_running', 'Responses that are stored as they run.', gauges.responsesRunning)
  add('websockets_open', 'WebSockets that are open.', gauges.socketsOpen)
  add('websockets_busy', 'WebSockets with work or unsent bytes.', gauges.socketsBusy)
  const { speech } = gauges
  add('speech_connections', 'Connections of speech sessions.', () => speech().connections)
  add('speech_sessions', 'Speech sessions.', () => speech().sessions)
  add('speech_sessions_waiting', 'Those that wait for their client.', () => speech().waiting)
  add('speech_queued_bytes', 'Audio that is not decoded yet.', () => speech().queuedBytes)
  add('speech_unread_bytes', 'Frames that wait for their client.', () => speech().unreadBytes)
  addDatabaseGauges(registry, gauges)
}

/** Both from one question. */
function addDatabaseGauges(registry: MetricRegistry, { jobs }: WatchedGauges): void {
  let asked: Promise<readonly CountedJobs[] | null> | undefined
  const ask = () => {
    asked ??= orAfter(jobs(), databaseMs, null)
      .catch(() => null)
      .finally(() => {
        asked = undefined
      })
    return asked
  }
  registry.gauge(
    { name: 'sluice_database_up', help: 'Whether the database answers.' },
    async (): Promise<readonly Sample[]> => [[(await ask()) === null ? 0 : 1]],
  )
  registry.gauge(
    {
      name: 'sluice_jobs',
      help: 'Background work of all workers.',
      labels: ['queue', 'state'],
    },
    async () =>
      ((await ask()) ?? []).flatMap(({ queue, waiting, running, failed }): Sample[] => [
        [waiting, queue, 'waiting'],
        [running, queue, 'running'],
        [failed, queue, 'failed'],
      ]),
  )
}

function addProcessGauges(registry: MetricRegistry): void {
  registry.gauge(
    { name: 'process_resident_memory_bytes', help: 'Memory of the process.' },
    process.memoryUsage.rss,
  )
  registry.gauge(
    { name: 'process_cpu_seconds_total', help: 'Time of processors.', kind: 'counter' },
    () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / microsPerSecond
    },
  )
  registry.gauge(
    { name: 'process_uptime_seconds', help: 'How long the process runs.' },
    process.uptime,
  )
}

/** How much later than it should a timer fires. Returns what ends it. */
function observeLag(registry: MetricRegistry): () => void {
  const lag = registry.histogram({
    name: 'sluice_event_loop_lag_seconds',
    help: `How much too late a timer fires, looked at every ${lagEveryMs} ms.`,
    bounds: lagBoundsS,
  })
  let dueAt = performance.now() + lagEveryMs
  const timer = setInterval(() => {
    const at = performance.now()
    lag.observe(Math.max(0, at - dueAt) / millisPerSecond)
    dueAt = at + lagEveryMs
  }, lagEveryMs)
  timer.unref()
  return () => clearInterval(timer)
}
