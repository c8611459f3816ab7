import type { Database } from '#db/client.ts'
import type { Endpoint } from './api/endpoint.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config/schema.ts'
import type { CheckGroup } from './doctor/check.ts'
import type { Reloads } from './reload/worker-reloads.ts'
import type { Settings } from './settings/settings.ts'
import type { Log } from './telemetry/log.ts'
import type { MetricSet } from './telemetry/metric-definition.ts'
import type { MetricRegistry } from './telemetry/metrics.ts'
import type { Scrape } from './telemetry/scrape.ts'
import type { Tracer } from './telemetry/tracing/tracer.ts'
import type { TrafficChannel } from './traffic/link.ts'

/**
 * One feature of the program: the services that it starts, and the endpoints that it serves.
 * `src/modules.ts` lists all of them. A module names the services that it needs; the compiler checks
 * that some module provides each.
 */
export type Module<Needs extends object, Services extends object, EndpointNeeds extends object> = {
  readonly name: string
  /** The tags of its endpoints in the API document, with their descriptions. */
  readonly tags?: Tags
  /** The metrics that it registers. */
  readonly metrics?: readonly MetricSet[]
  /** Gets the services of the modules before it in the list, and registers its metrics. */
  readonly start?: (needs: Needs) => Started<Services> | Promise<Started<Services>>
  /**
   * Begins work in the background that needs services of every module, such as processing a queue; once,
   * when all modules have started.
   */
  readonly started?: (needs: EndpointNeeds) => void | Promise<void>
  /** May use the services of every module. Lists only: there may be several applications. */
  readonly endpoints?: (needs: EndpointNeeds) => readonly Endpoint[]
  /** What `bun run doctor` checks; it starts no services. */
  readonly doctor?: CheckGroup
}

export type Tags = Readonly<Record<string, string>>

/** Makes a changed configuration effective. Must not fail. */
export type Apply = () => void

type Started<Services extends object> = {
  readonly services: Services
  /**
   * Prepares a changed configuration, which may fail; `before` is the one in effect. What it returns is
   * called after every module has prepared, in one turn of the event loop.
   */
  readonly reload?: (next: Config, before: Config) => Apply | Promise<Apply>
  /** Modules are closed in the reverse order of their start. */
  readonly close?: () => void | Promise<void>
}

/** The services that exist before any module starts. */
export type Foundation = {
  /**
   * The configuration in effect. Keys marked `reloading` may change: read their sections at each use,
   * or declare a `reload`.
   */
  readonly config: Config
  readonly log: Log
  readonly clock: Clock
  readonly now: () => Date
  readonly fetch: typeof fetch
  readonly database: Database
  /** What administrators may change at any time. */
  readonly settings: Settings
  readonly metrics: MetricRegistry
  readonly scrapeMetrics: Scrape
  /** To the supervisor; null without one. */
  readonly trafficChannel: TrafficChannel | null
  /** Reading the configuration file again, in every worker of this machine. */
  readonly reloads: Reloads
  /** Whether the process was asked to stop. */
  readonly draining: () => boolean
  /** Null where no traces are exported. */
  readonly tracer: Tracer | null
}

/** Declares a module; the types of its services are inferred. */
export function module<
  Needs extends object,
  Services extends object = object,
  EndpointNeeds extends object = object,
>(declaration: Module<Needs, Services, EndpointNeeds>): Module<Needs, Services, EndpointNeeds> {
  return declaration
}
