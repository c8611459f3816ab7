import { startGateway } from './gateway.ts'
import type { LoadJob } from './load-job.ts'
import { gatewayPath } from './load-request.ts'
import type { Protocol } from './mock-frames.ts'
import { startNginx } from './nginx.ts'
import type { Pair } from './pairs.ts'

/** Something that answers requests, on the way to the mock upstream or the upstream itself. */
export type Target = {
  /** `direct`, `nginx`, `Sluice` or the name of a peer. */
  readonly name: string
  /** What the load client speaks to it. */
  readonly protocol: Protocol
  /** What the mock upstream speaks behind it. */
  readonly upstream: Protocol
  readonly port: number
  /** The root of its process tree; null for the upstream itself and what runs elsewhere. */
  readonly pid: number | null
  readonly bearer: string | null
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
}

export type TargetOptions = {
  readonly upstreamPort: number
  readonly pairs: readonly Pair[]
  /** A server on which each gateway gets a database of its own; without it PGlite. */
  readonly databaseServer: string | undefined
  readonly logLevel: string
  readonly settings: readonly string[]
}

/** The upstream itself and nginx, where it is installed, in each protocol of the upstreams. */
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

/** A gateway for each protocol of the upstreams, and a target for each pair. */
export async function startGatewayTargets(options: TargetOptions): Promise<Target[]> {
  const upstreams = [...new Set(options.pairs.map(({ upstream }) => upstream))]
  const started = await Promise.all(upstreams.map((upstream) => startTargets(upstream, options)))
  return started.flat()
}

async function startTargets(upstreamApi: Protocol, options: TargetOptions): Promise<Target[]> {
  const { upstreamPort, pairs, databaseServer, logLevel, settings } = options
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
      return { name: 'Sluice', protocol: client, upstream, path, ...gateway }
    })
}

/** The part of a job that says where it goes and whose CPU time is counted. */
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
