import { startFloor, startGateway } from './gateway.ts'
import type { LoadJob } from './load-job.ts'
import { gatewayPath } from './load-request.ts'
import type { Protocol } from './mock-frames.ts'
import { startNginx } from './nginx.ts'
import type { Pair } from './pairs.ts'

/** A server under test: a proxy to the mock upstream, or the upstream itself. */
export type Target = {
  /** `direct`, `nginx`, `floor`, `Sluice`, `variant` or the name of a peer. */
  readonly name: string
  /** Protocol of the load client. */
  readonly protocol: Protocol
  /** Protocol of the mock upstream. */
  readonly upstream: Protocol
  readonly port: number
  /** Root of its process tree; null for the upstream itself and remote servers. */
  readonly pid: number | null
  readonly bearer: string | null
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
}

export type TargetOptions = {
  readonly upstreamPort: number
  readonly pairs: readonly Pair[]
  /** PostgreSQL server for the gateways' databases; default: PGlite. */
  readonly databaseServer: string | undefined
  readonly logLevel: string
  readonly settings: readonly string[]
  /** Further settings of a second gateway in the same rounds; none: no second one. */
  readonly variant?: readonly string[]
}

/** Limits that no request reaches, so that checking them is part of what is measured. */
const limitSettings: readonly string[] = [
  'limits.default.requests_per_minute=100000000',
  'limits.default.input_tokens_per_minute=10000000000',
  'limits.default.output_tokens_per_minute=10000000000',
  'limits.default.concurrent_generations=100000',
]

/** The upstream itself and nginx (if installed), per upstream protocol. */
export async function startPlainTargets(options: TargetOptions): Promise<Target[]> {
  const { upstreamPort, pairs } = options
  const nginx = await startNginx(upstreamPort)
  if (nginx === undefined) {
    console.log('nginx is not installed here: its columns are empty, and there are no ratios')
  }
  return [...new Set(pairs.map(({ upstream }) => upstream))].flatMap((upstream) => {
    const plain = { protocol: upstream, upstream, bearer: null }
    const direct = { ...plain, name: 'direct', port: upstreamPort, pid: null }
    return nginx === undefined ? [direct] : [direct, { ...plain, name: 'nginx', ...nginx }]
  })
}

/** The floor (`bench/floor.ts`), which translates Responses to chat completions; none for other pairs. */
export async function startFloorTarget(options: TargetOptions): Promise<Target[]> {
  const { upstreamPort, pairs } = options
  if (!pairs.some(({ name }) => name === 'responses-chat')) return []
  const { bearer, port, pid } = await startFloor(upstreamPort)
  const path = gatewayPath('responses')
  return [{ name: 'floor', protocol: 'responses', upstream: 'chat', path, bearer, port, pid }]
}

/** One gateway per upstream protocol, two with a variant, and one target per pair. */
export async function startGatewayTargets(options: TargetOptions): Promise<Target[]> {
  const upstreams = [...new Set(options.pairs.map(({ upstream }) => upstream))]
  const settings = [...limitSettings, ...options.settings]
  const { variant = [] } = options
  const gateways = upstreams.flatMap((upstream) => {
    const sluice = { name: 'Sluice', upstream, settings }
    if (variant.length === 0) return [sluice]
    return [sluice, { name: 'variant', upstream, settings: [...settings, ...variant] }]
  })
  const started = await Promise.all(gateways.map((gateway) => startTargets(gateway, options)))
  return started.flat()
}

async function startTargets(
  given: {
    readonly name: string
    readonly upstream: Protocol
    readonly settings: readonly string[]
  },
  options: TargetOptions,
): Promise<Target[]> {
  const { name, upstream: upstreamApi, settings } = given
  const { upstreamPort, pairs, databaseServer, logLevel } = options
  const gateway = await startGateway({
    upstreamPort,
    upstreamApi,
    databaseServer,
    logLevel,
    settings,
  })
  return pairs
    .filter(({ upstream }) => upstream === upstreamApi)
    .map(({ client, upstream }) => {
      const path = gatewayPath(client)
      return { name, protocol: client, upstream, path, ...gateway }
    })
}

/** Target part of a job. */
export function jobFor(target: Target) {
  const { port, protocol, bearer, pid, path, headers } = target
  return {
    port,
    protocol,
    bearer,
    measurePid: pid,
    ...(path === undefined ? {} : { path }),
    ...(headers === undefined ? {} : { headers }),
  } satisfies Partial<LoadJob>
}
