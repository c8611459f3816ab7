import type { ModelConfig } from '#config/schema.ts'
import type { CheckGroup, CheckInputs } from '#doctor/check.ts'
import { clockFinding } from '#doctor/clock.ts'
import { type Finding, fail, ok, skip, warn } from '#doctor/finding.ts'
import { placeOf, reasonOf } from '#doctor/format.ts'
import type { Transport } from '#inference/transport.ts'
import type { Upstream } from '#inference/upstream.ts'
import * as flite from '#inference/upstreams/flite/package.ts'
import { type Adapters, adapters, isRemote } from '#inference/upstreams/index.ts'
import * as llama from '#inference/upstreams/llama/package.ts'
import * as onnx from '#inference/upstreams/onnx/package.ts'
import { commandLine } from '#lib/own-program.ts'
import type { ConfiguredUpstream } from '#models/catalogue.ts'
import { fliteFolder, fliteUpstreamName } from '#models/flite-config.ts'
import { llamaFolder, localUpstreamName } from '#models/llama-config.ts'
import { configuredTargets } from '#models/model-config.ts'
import { onnxFolder, onnxUpstreamName } from '#models/onnx-config.ts'
import { checkSearchModels } from '#models/search-check.ts'
import { configuredUpstreams } from '#models/upstreams.ts'

/** In addition to the timeout of a list. */
const slackMs = 5_000

/** Fetches the model list of each upstream and compares the configured models with them. */
export const upstreams: CheckGroup = {
  name: 'upstreams',
  limitMs: ({ config }) => config.models.refreshTimeoutMs + slackMs,
  async check(inputs, signal) {
    const { config } = inputs
    const listings = await Promise.all(
      configuredUpstreams(config).map((source) => ask(inputs, source, signal)),
    )
    return [
      ...(config.upstream.length === 0 ? [onlyBuiltIn(config)] : []),
      ...listings.flatMap(({ findings }) => findings),
      ...listedFindings(config.model, listings),
      ...fallbackFindings(config.model, listings),
      ...(await checkSearchModels(inputs)),
    ]
  },
}

const adaptersByKind: Partial<Adapters> = adapters

function onlyBuiltIn(config: CheckInputs['config']): Finding {
  const check = 'upstreams'
  if (config.llama.enabled && llama.packageFault(llamaFolder(config)) === null) {
    return ok(check, 'none configured; installed models and the built-in demo are used')
  }
  return warn(
    check,
    'none configured; the built-in demo is used',
    `Run "${commandLine('model install')}" for a small model on this machine, add an [[upstream]] to the file, or set SLUICE_UPSTREAM_URL.`,
  )
}

/** The listing of an upstream. `models`: null without a list. */
type UpstreamListing = {
  readonly name: string
  readonly models: readonly string[] | null
  readonly findings: readonly Finding[]
}

async function ask(
  inputs: CheckInputs,
  { upstream, models: named }: ConfiguredUpstream,
  stopped: AbortSignal,
): Promise<UpstreamListing> {
  const { config, transport } = inputs
  const { name } = upstream
  const adapter = adaptersByKind[upstream.kind]
  if (adapter === undefined) {
    return { name, models: null, findings: [localFinding(upstream, config)] }
  }
  const seen: ResponseFacts = { status: null, clockAheadMs: null }
  const listing = (models: readonly string[] | null, finding: Finding) => {
    const { clockAheadMs } = seen
    const clocks = clockAheadMs === null ? [] : [clockFinding(`upstream "${name}"`, clockAheadMs)]
    return { name, models, findings: [finding, ...clocks] }
  }
  const limit = AbortSignal.timeout(config.models.refreshTimeoutMs)
  try {
    const listed = await adapter.listModels({
      upstream,
      transport: watching(transport, seen, inputs.now),
      limits: config.limits,
      signal: AbortSignal.any([stopped, limit]),
    })
    const models = listed.map(({ id }) => id)
    return listing(models, answered(upstream, { models, named }))
  } catch (error) {
    const reason = limit.aborted
      ? `no response within ${config.models.refreshTimeoutMs} ms`
      : reasonOf(error)
    const facts = { status: seen.status, reason, isNamed: named !== null }
    return listing(named, failed(upstream, facts))
  }
}

/** Facts of the last response. */
type ResponseFacts = { status: number | null; clockAheadMs: number | null }

function watching(transport: Transport, seen: ResponseFacts, now: () => Date): Transport {
  return {
    async send(request) {
      const sentAt = now().getTime()
      const answer = await transport.send(request)
      seen.status = answer.status
      const dateMs = Date.parse(answer.header('date') ?? '')
      // The header has the current second.
      if (Number.isFinite(dateMs)) seen.clockAheadMs = dateMs + 500 - (sentAt + now().getTime()) / 2
      return answer
    },
  }
}

function answered(
  { name, kind, baseUrl, key }: Upstream,
  { models, named }: { models: readonly string[]; named: readonly string[] | null },
): Finding {
  const check = `upstream "${name}"`
  if (!isRemote(kind)) return ok(check, 'built in')
  const by = key === undefined ? 'without a credential' : 'with its credential'
  const detail = `${placeOf(baseUrl)} lists ${models.length} models, ${by}`
  const missing = (named ?? []).filter((model) => !models.includes(model))
  if (missing.length > 0) {
    return warn(
      check,
      `${detail}; missing: ${missing.join(', ')}`,
      'Correct the models of this [[upstream]], or load them there.',
    )
  }
  if (models.length > 0) return ok(check, detail)
  return warn(check, detail, 'Load a model there, or name its models in this [[upstream]].')
}

/** The runtimes of local models are installed separately. */
function localFinding({ name, kind }: Upstream, config: CheckInputs['config']): Finding {
  const check = `upstream "${name}"`
  if (kind === 'flite') {
    return flite.packageFault(fliteFolder(config)) === null
      ? ok(check, `speaks with ${flite.packageName} ${flite.packageVersion}`)
      : skip(check, `run "${flite.installCommand}" to speak texts on this machine`)
  }
  const runtime = kind === 'onnx' ? onnx : llama
  const folder = kind === 'onnx' ? onnxFolder(config) : llamaFolder(config)
  return runtime.packageFault(folder) === null
    ? ok(check, `runs installed models with ${runtime.packageName} ${runtime.packageVersion}`)
    : skip(check, `run "${runtime.installCommand}" to use installed models`)
}

function failed(
  { name, baseUrl, key }: Upstream,
  { status, reason, isNamed }: { status: number | null; reason: string; isNamed: boolean },
): Finding {
  const check = `upstream "${name}"`
  const place = placeOf(baseUrl)
  if (status === 401 || status === 403) {
    const what = key === undefined ? 'requires a credential' : 'refuses the credential'
    return fail(check, `${place} ${what} (${status})`, 'Set its key or key_env.')
  }
  if (status !== null && status < 500) {
    const detail = `${place} responds without a model list (${status})`
    if (isNamed) return ok(check, `${detail}; its models are named in the configuration`)
    return fail(check, detail, 'Correct its url, which usually ends in /v1, or name its models.')
  }
  const advice = 'Start it, allow connections to it, or correct its url.'
  return fail(check, `${place}: ${reason}`, status === null ? advice : 'See its log.')
}

/** Compares the configured models with the lists of the upstreams. */
function listedFindings(
  models: readonly ModelConfig[],
  listings: readonly UpstreamListing[],
): Finding[] {
  const check = 'models'
  if (models.length === 0) return [ok(check, 'as listed by the upstreams')]
  const checked = models.map((model) => {
    const targets = configuredTargets(model)
    const lists = targets.map(({ upstream, model: name }) => {
      const models = listings.find((one) => one.name === upstream)?.models
      // An upstream without a list may have the model.
      return models == null ? null : models.includes(name)
    })
    const state = lists.includes(true) ? 'listed' : lists.includes(null) ? 'unknown' : 'missing'
    return { name: model.name, targets, state }
  })
  const count = (state: string) => checked.filter((model) => model.state === state).length
  const unknown = count('unknown')
  const rest = unknown === 0 ? '' : `; ${unknown} unknown, because their upstream has no list`
  return [
    ok(check, `${count('listed')} of ${models.length} are listed by their upstreams${rest}`),
    ...checked
      .filter(({ state }) => state === 'missing')
      .map(({ name, targets }) =>
        warn(
          `model "${name}"`,
          targets.map(({ upstream, model }) => `${upstream} does not list "${model}"`).join(', '),
          'Correct upstream_model, or load the model there; requests for it will probably fail.',
        ),
      ),
  ]
}

/** Fallbacks that no upstream lists, unless a remote one has no list. */
function fallbackFindings(
  models: readonly ModelConfig[],
  listings: readonly UpstreamListing[],
): Finding[] {
  if (listings.some(({ name, models }) => models === null && !localNames.has(name))) return []
  const known = new Set([
    ...models.flatMap(({ name, aliases }) => [name, ...aliases]),
    ...listings.flatMap((listing) => listing.models ?? []),
  ])
  return models.flatMap(({ name, fallbacks }) =>
    fallbacks
      .filter((fallback) => !known.has(fallback))
      .map((fallback) =>
        warn(
          `model "${name}"`,
          `there is no model "${fallback}" to fall back to`,
          'Correct fallbacks, add a [[model]] of this name, or install the model.',
        ),
      ),
  )
}

/** Models that are installed later may be fallbacks; these upstreams have no list here. */
const localNames: ReadonlySet<string> = new Set([
  localUpstreamName,
  onnxUpstreamName,
  fliteUpstreamName,
])
