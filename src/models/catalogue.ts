import type { Config, ModelConfig } from '#config/schema.ts'
import type { Target } from '#inference/generate.ts'
import type { Transport } from '#inference/transport.ts'
import type { Upstream, UpstreamModel } from '#inference/upstream.ts'
import type { Adapters } from '#inference/upstreams/index.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Log } from '#telemetry/log.ts'
import { balance } from './balance.ts'

/** A name that callers may use, and where it leads. */
export type Model = {
  readonly id: string
  readonly mode: ModelConfig['mode']
  readonly capabilities: readonly string[]
  readonly contextWindow: number | null
  /** Unix seconds. */
  readonly created: number
  /** Whether `created` was told; otherwise it is when this process started. */
  readonly isDated: boolean
  readonly ownedBy: string
  readonly targets: readonly Target[]
  /** Whether the order of the targets is a preference, or they share the work by weight. */
  readonly ordered: boolean
}

/** What exists: from the configuration and from each upstream's own list. */
export type Catalogue = {
  list(): readonly Model[]
  /** By name or alias, among what is known now. */
  find(name: string): Model | undefined
  /** Resolves once every upstream was asked for its models, whether it answered or not. */
  readonly asked: Promise<void>
  /** Asks every upstream again, now: something about its models has changed. */
  refresh(): Promise<void>
  /** By name or alias; throws `model_not_found`, or `service_unavailable` while it cannot know. */
  resolve(name: string, how?: ResolveOptions): Promise<Model>
  close(): void
}

type ResolveOptions = {
  /** Other ways in which the name may be written, the likeliest first. */
  readonly spellings?: readonly string[]
  /** Who asks for the same model with the same text is led to the same upstream first. */
  readonly affinity?: string | null
}

export type CatalogueDeps = {
  config: Pick<Config, 'model' | 'models' | 'limits'>
  upstreams: readonly ConfiguredUpstream[]
  adapters: Adapters
  transport: Transport
  log: Log
  now: () => Date
}

export type ConfiguredUpstream = {
  readonly upstream: Upstream
  readonly weight: number
  /** The models that the configuration names; null: the upstream is asked. */
  readonly models: readonly string[] | null
}

/** An unknown name asks the upstreams again, but not more often than this. */
const urgentRefreshMs = 2_000

type Listing = {
  readonly source: ConfiguredUpstream
  /** null until the upstream answered once; kept while it is down. */
  models: readonly UpstreamModel[] | null
  down: boolean
  /** The question that is under way. */
  asking: Promise<void> | null
  /** When the last question was over. */
  askedAt: number
}

/** Every name, by what it is: of a model, or an alias of one. */
type Names = { readonly models: Map<string, Model>; readonly aliases: Map<string, Model> }

export function createCatalogue(deps: CatalogueDeps): Catalogue {
  const startedAt = unixSeconds(deps.now())
  const stopped = new AbortController()
  const listings = deps.upstreams.map(openListing)
  const changing = listings.filter(({ source }) => source.models === null)
  let names = collectNames(deps, listings, startedAt)

  // Each on its own, so that an upstream that hangs holds up no other.
  const refresh = (listing: Listing): Promise<void> => {
    listing.asking ??= ask(listing, deps, stopped.signal).then(() => {
      listing.asking = null
      listing.askedAt = performance.now()
      names = collectNames(deps, listings, startedAt)
    })
    return listing.asking
  }
  const refreshAll = async () => {
    await Promise.all(changing.map(refresh))
  }

  const find = (name: string) => names.models.get(name) ?? names.aliases.get(name)
  const findAny = (spellings: readonly string[]) =>
    spellings.map(find).find((model) => model !== undefined)
  const findAtUpstreams = (spellings: readonly string[]): Promise<Model | undefined> => {
    const due = changing.filter(({ askedAt }) => performance.now() - askedAt > urgentRefreshMs)
    const answers = due.map(async (listing) => {
      await refresh(listing)
      return findAny(spellings) ?? Promise.reject()
    })
    return Promise.any(answers).catch(() => undefined)
  }
  const asked = refreshAll()
  const timer = setInterval(refreshAll, deps.config.models.refreshMs)

  return {
    asked,
    list: () => [...names.models.values()],
    find,
    async refresh() {
      // What is being asked already may be answered with what was.
      await Promise.all(changing.map(({ asking }) => asking))
      await refreshAll()
    },
    async resolve(name, { spellings = [name], affinity = null } = {}) {
      const found = findAny(spellings) ?? (await findAtUpstreams(spellings))
      if (found === undefined) throw notFound(name, listings)
      return shareOut(found, deps.upstreams, affinity)
    },
    close() {
      clearInterval(timer)
      stopped.abort(new AppError('draining', 'The server is stopping.'))
    },
  }
}

function openListing(source: ConfiguredUpstream): Listing {
  const models = source.models?.map((id) => ({
    id,
    created: null,
    ownedBy: null,
    contextWindow: null,
  }))
  const askedAt = Number.NEGATIVE_INFINITY
  return { source, models: models ?? null, down: false, asking: null, askedAt }
}

/** What the configuration names goes before what an upstream calls the same. */
function collectNames(
  deps: Pick<CatalogueDeps, 'config' | 'upstreams'>,
  listings: readonly Listing[],
  startedAt: number,
): Names {
  const models = new Map<string, Model>()
  const aliases = new Map<string, Model>()
  for (const entry of deps.config.model) {
    const model = fromConfig(entry, deps.upstreams, startedAt)
    models.set(model.id, model)
    for (const alias of entry.aliases) aliases.set(alias, model)
  }
  const configured = new Set([...models.keys(), ...aliases.keys()])
  for (const listing of listings) {
    for (const listed of listing.models ?? []) {
      if (configured.has(listed.id)) continue
      models.set(listed.id, withTarget(models.get(listed.id), { listed, listing, startedAt }))
    }
  }
  return { models, aliases }
}

function notFound(name: string, listings: readonly Listing[]): AppError {
  if (listings.some((listing) => listing.models === null)) {
    return new AppError(
      'service_unavailable',
      `The model "${name}" is not known, and an upstream that may have it does not answer.`,
      { param: 'model', retryAfterS: 5 },
    )
  }
  return modelNotFound(name)
}

export function modelNotFound(name: string): AppError {
  return new AppError('model_not_found', `The model "${name}" does not exist.`, { param: 'model' })
}

/** Asks one upstream for its models; on failure what it said before holds on. */
async function ask(listing: Listing, deps: CatalogueDeps, stopped: AbortSignal): Promise<void> {
  const { upstream } = listing.source
  const { transport } = deps
  const signal = AbortSignal.any([
    stopped,
    AbortSignal.timeout(deps.config.models.refreshTimeoutMs),
  ])
  try {
    const adapter = deps.adapters[upstream.kind]
    listing.models = await adapter.listModels({
      upstream,
      transport,
      limits: deps.config.limits,
      signal,
    })
    if (listing.down) deps.log.info('upstream lists its models again', { upstream: upstream.name })
    listing.down = false
  } catch (error) {
    if (stopped.aborted) return
    if (!listing.down) {
      deps.log.warn('upstream does not list its models', {
        upstream: upstream.name,
        error: toAppError(error).message,
      })
    }
    listing.down = true
  }
}

function fromConfig(
  entry: ModelConfig,
  upstreams: readonly ConfiguredUpstream[],
  created: number,
): Model {
  const { upstreamModel = entry.name, tokenizer } = entry
  const tokenizerFile = tokenizer === undefined ? {} : { tokenizerFile: tokenizer }
  const targets = entry.upstreams.flatMap((name) =>
    upstreams
      .filter(({ upstream }) => upstream.name === name)
      .map(({ upstream }) => ({ upstream, model: upstreamModel, ...tokenizerFile })),
  )
  return {
    id: entry.name,
    mode: entry.mode,
    capabilities: entry.capabilities,
    contextWindow: entry.contextWindow ?? null,
    created,
    isDated: false,
    ownedBy: entry.upstreams[0] ?? 'sluice',
    targets,
    ordered: true,
  }
}

/** A model that several upstreams list leads to all of them. */
function withTarget(
  known: Model | undefined,
  found: { listed: UpstreamModel; listing: Listing; startedAt: number },
): Model {
  const { listed } = found
  const { upstream } = found.listing.source
  const target = { upstream, model: listed.id }
  if (known !== undefined) return { ...known, targets: [...known.targets, target] }
  return {
    id: listed.id,
    mode: 'generate',
    capabilities: listed.capabilities ?? [],
    contextWindow: listed.contextWindow,
    created: listed.created ?? found.startedAt,
    isDated: listed.created !== null,
    ownedBy: listed.ownedBy ?? upstream.name,
    targets: [target],
    ordered: false,
  }
}

/** Models of the configuration keep their order; upstreams that merely list one share by weight. */
function shareOut(
  model: Model,
  upstreams: readonly ConfiguredUpstream[],
  affinity: string | null,
): Model {
  if (model.ordered || model.targets.length < 2) return model
  const weights = new Map(upstreams.map(({ upstream, weight }) => [upstream.name, weight]))
  const weightOf = ({ upstream }: Target) => weights.get(upstream.name) ?? 1
  return { ...model, targets: balance(model.targets, weightOf, affinity) }
}
