import type { Config, ModelConfig } from '#config/schema.ts'
import type { Transport } from '#inference/transport.ts'
import type { Target, Upstream, UpstreamModel } from '#inference/upstream.ts'
import type { Adapters } from '#inference/upstreams/index.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Log } from '#telemetry/log.ts'
import type { AccessRule } from './access-rules.ts'
import { collectModels } from './collect-models.ts'
import type { ModelAccess } from './model-access.ts'

/** A model that requests may name, and the targets that serve it. */
export type Model = {
  readonly id: string
  readonly mode: ModelConfig['mode']
  readonly capabilities: readonly string[]
  readonly contextWindow: number | null
  /** Of a model that speaks, if its upstream tells. */
  readonly voices?: readonly string[]
  /** Unix seconds; 0 if no upstream reports it. */
  readonly created: number
  readonly ownedBy: string
  readonly aliases: readonly string[]
  readonly targets: readonly Target[]
  /** Whether some targets are for certain groups alone. */
  readonly isRestricted: boolean
}

/** An additional name of a model. */
type Alias = { readonly alias: string; readonly model: Model }

export type Catalogue = ReturnType<typeof createCatalogue>

export type ResolveOptions = {
  /** For whom; models that the principal may not use are unknown. */
  readonly principal: RequestPrincipal
  /** Alternative spellings of the name, the likeliest first. */
  readonly spellings?: readonly string[]
  /** The mode that the caller needs. */
  readonly mode?: Model['mode']
}

/** What the catalogue is made of. */
export type CatalogueSources = {
  config: Pick<Config, 'model' | 'models' | 'limits'>
  upstreams: readonly ConfiguredUpstream[]
}

export type CatalogueDeps = CatalogueSources & {
  adapters: Adapters
  transport: Transport
  access: Pick<ModelAccess, 'usable'>
  log: Log
  now: () => Date
}

export type ConfiguredUpstream = {
  readonly upstream: Upstream
  readonly weight: number
  /** The models that the configuration names; null: the upstream is asked for its list. */
  readonly models: readonly string[] | null
  /** Rules for models of its list. */
  readonly access: readonly AccessRule[]
}

/** An unknown name triggers a refresh, but not more often than this. */
const urgentRefreshMs = 2_000

/** The model list of one upstream. */
type Listing = {
  /** Changes with a reload of the configuration. */
  source: ConfiguredUpstream
  /** null until the first response; kept while the upstream is unreachable. */
  models: readonly UpstreamModel[] | null
  isFailing: boolean
  refreshing: Promise<void> | null
  refreshedAtMs: number
}

/**
 * The models of the configuration and of the upstreams' own lists. Models that a principal may not use
 * do not exist for it.
 */
export function createCatalogue(given: CatalogueDeps) {
  const { access } = given
  const stopped = new AbortController()
  let deps = given
  let listings = deps.upstreams.map(createListing)
  let refreshed = listings.filter(isRefreshed)
  let names = collectModels(deps, listings)

  // Each separately, so that an upstream that hangs does not delay the others.
  const refresh = (listing: Listing): Promise<void> => {
    listing.refreshing ??= fetchList(listing, deps, stopped.signal).then(() => {
      listing.refreshing = null
      listing.refreshedAtMs = performance.now()
      // A reload may have replaced it meanwhile.
      if (listings.includes(listing)) names = collectModels(deps, listings)
    })
    return listing.refreshing
  }
  const refreshAll = async () => {
    await Promise.all(refreshed.map(refresh))
  }

  const find = (principal: RequestPrincipal, name: string): Model | undefined => {
    const model = names.models.get(name) ?? names.aliases.get(name)
    return model === undefined ? undefined : access.usable(principal, model)
  }
  const findAny = (principal: RequestPrincipal, spellings: readonly string[]) => {
    for (const name of spellings) {
      const model = find(principal, name)
      if (model !== undefined) return model
    }
    return undefined
  }
  /** Resolves as soon as one refreshed list has the model. */
  const refreshUntilFound = (
    principal: RequestPrincipal,
    spellings: readonly string[],
  ): Promise<Model | undefined> => {
    const due = refreshed.filter(
      ({ refreshedAtMs }) => performance.now() - refreshedAtMs > urgentRefreshMs,
    )
    const refreshes = due.map(async (listing) => {
      await refresh(listing)
      return findAny(principal, spellings) ?? Promise.reject()
    })
    return Promise.any(refreshes).catch(() => undefined)
  }
  let asked = refreshAll()
  let timer = setInterval(refreshAll, deps.config.models.refreshMs)

  return {
    /** Resolves once every upstream was asked for its models, successfully or not. */
    asked: () => asked,
    /** Changes to these models. Lists of upstreams that stay are kept until the next refresh. */
    configure(sources: CatalogueSources) {
      deps = { ...given, ...sources }
      const before = new Map(listings.map((listing) => [listing.source.upstream.name, listing]))
      listings = deps.upstreams.map((source) => relist(before.get(source.upstream.name), source))
      refreshed = listings.filter(isRefreshed)
      names = collectModels(deps, listings)
      asked = Promise.all(
        refreshed.filter(({ refreshedAtMs }) => refreshedAtMs < 0).map(refresh),
      ).then(() => {})
      clearInterval(timer)
      timer = setInterval(refreshAll, deps.config.models.refreshMs)
    },
    list: (principal: RequestPrincipal): readonly Model[] =>
      [...names.models.values()].flatMap((model) => access.usable(principal, model) ?? []),
    listAliases: (principal: RequestPrincipal): readonly Alias[] =>
      [...names.aliases].flatMap(([alias, given]) => {
        const model = access.usable(principal, given)
        return model === undefined ? [] : [{ alias, model }]
      }),
    /** Of every model. */
    targets: (): readonly Target[] => [...names.models.values()].flatMap(({ targets }) => targets),
    /** By name or alias, without asking an upstream. */
    find,
    /** Whether a name is taken, also by a model that a principal may not use. */
    has: (name: string): boolean => names.models.has(name) || names.aliases.has(name),
    /** Asks every upstream again. */
    async refresh() {
      // A running refresh may still return the previous list.
      await Promise.all(refreshed.map(({ refreshing }) => refreshing))
      await refreshAll()
    },
    /**
     * By name or alias. Throws `model_not_found`, `model_mode_mismatch`, or `service_unavailable` while
     * an upstream that may have the model has not responded yet.
     */
    async resolve(name: string, options: ResolveOptions): Promise<Model> {
      const { principal, spellings = [name], mode } = options
      const model = findAny(principal, spellings) ?? (await refreshUntilFound(principal, spellings))
      if (model === undefined) throw notFound(name, listings)
      if (mode !== undefined && model.mode !== mode) throw modeMismatch(name, model.mode, mode)
      return model
    },
    close() {
      clearInterval(timer)
      stopped.abort(new AppError('draining', 'The server is stopping.'))
    },
  }
}

function createListing(source: ConfiguredUpstream): Listing {
  const models = source.models?.map((id) => ({
    id,
    created: null,
    ownedBy: null,
    contextWindow: null,
  }))
  return {
    source,
    models: models ?? null,
    isFailing: false,
    refreshing: null,
    refreshedAtMs: Number.NEGATIVE_INFINITY,
  }
}

/** The listing after a reload; a changed upstream is asked again. */
function relist(before: Listing | undefined, source: ConfiguredUpstream): Listing {
  if (before === undefined) return createListing(source)
  const isNamed = (before.source.models ?? source.models) !== null
  const { kind } = before.source.upstream
  if (isNamed || kind !== source.upstream.kind) return createListing(source)
  if (Bun.deepEquals(before.source.upstream, source.upstream))
    return Object.assign(before, { source })
  return { ...createListing(source), models: before.models, isFailing: before.isFailing }
}

function isRefreshed({ source }: Listing): boolean {
  return source.models === null
}

/** Some servers report the time of the response as that of the model. */
const responseTimeS = 300

function withoutResponseTimes(
  models: readonly UpstreamModel[],
  nowS: number,
): readonly UpstreamModel[] {
  return models.map((model) =>
    (model.created ?? 0) > nowS - responseTimeS ? { ...model, created: null } : model,
  )
}

/** Refreshes the list of one upstream; a failure keeps the previous list. */
async function fetchList(
  listing: Listing,
  { adapters, transport, config, log, now }: CatalogueDeps,
  stopped: AbortSignal,
): Promise<void> {
  const { upstream } = listing.source
  const timeout = AbortSignal.timeout(config.models.refreshTimeoutMs)
  try {
    const listed = await adapters[upstream.kind].listModels({
      upstream,
      transport,
      limits: config.limits,
      signal: AbortSignal.any([stopped, timeout]),
    })
    listing.models = withoutResponseTimes(listed, unixSeconds(now()))
    if (listing.isFailing) log.info('upstream model list recovered', { upstream: upstream.name })
    listing.isFailing = false
  } catch (error) {
    if (stopped.aborted) return
    if (!listing.isFailing) {
      log.warn('upstream model list failed', {
        upstream: upstream.name,
        error: toAppError(error).message,
      })
    }
    listing.isFailing = true
  }
}

function notFound(name: string, listings: readonly Listing[]): AppError {
  if (listings.every((listing) => listing.models !== null)) return modelNotFound(name)
  return new AppError(
    'service_unavailable',
    `The model "${name}" is unknown, and an upstream that may serve it does not respond.`,
    { param: 'model', retryAfterS: 5 },
  )
}

export function modelNotFound(name: string): AppError {
  return new AppError('model_not_found', `The model "${name}" does not exist.`, { param: 'model' })
}

function modeMismatch(name: string, mode: Model['mode'], required: Model['mode']): AppError {
  return new AppError(
    'model_mode_mismatch',
    `The model "${name}" has mode ${mode}; mode ${required} is required.`,
    { param: 'model' },
  )
}
