import type { ModelConfig } from '#config/schema.ts'
import type { Target, UpstreamModel } from '#inference/upstream.ts'
import { matchNames } from '#lib/name-patterns.ts'
import type { CatalogueDeps, ConfiguredUpstream, Model } from './catalogue.ts'

/** The models that an upstream lists; null until its first response. */
type Listing = {
  readonly source: ConfiguredUpstream
  readonly models: readonly UpstreamModel[] | null
}

type Names = { readonly models: Map<string, Model>; readonly aliases: Map<string, Model> }

/** Models of the configuration take precedence over listed models of the same name. */
export function collectModels(
  deps: Pick<CatalogueDeps, 'config' | 'upstreams'>,
  listings: readonly Listing[],
): Names {
  const models = new Map<string, Model>()
  const aliases = new Map<string, Model>()
  for (const entry of deps.config.model) {
    const model = configuredModel(entry, deps.upstreams)
    models.set(model.id, model)
    for (const alias of entry.aliases) aliases.set(alias, model)
  }
  const configured = new Set([...models.keys(), ...aliases.keys()])
  for (const { source, models: listed } of listings) {
    for (const entry of listed ?? []) {
      if (configured.has(entry.id)) continue
      // Upstreams that list the same model share its load.
      const { upstream, weight } = source
      const groups = groupsOf(source, entry.id)
      const restriction = groups === undefined ? {} : { groups }
      const target = { upstream, model: entry.id, tier: 0, weight, ...restriction }
      const known = models.get(entry.id)
      models.set(
        entry.id,
        known === undefined ? listedModel(entry, target) : withTarget(known, target),
      )
    }
  }
  return { models, aliases }
}

function withTarget(model: Model, target: Target): Model {
  const isRestricted = model.isRestricted || target.groups !== undefined
  return { ...model, targets: [...model.targets, target], isRestricted }
}

/** The groups of all rules that name a listed model; undefined: no rule does. */
function groupsOf({ access }: ConfiguredUpstream, id: string): ReadonlySet<string> | undefined {
  const rules = access.filter(({ models }) => matchNames([models])(id))
  return rules.length === 0 ? undefined : new Set(rules.flatMap(({ groups }) => groups))
}

function configuredModel(entry: ModelConfig, upstreams: readonly ConfiguredUpstream[]): Model {
  const { upstreamModel = entry.name, tokenizer } = entry
  const { groups } = entry
  const tokenizerFile = tokenizer === undefined ? {} : { tokenizerFile: tokenizer }
  const restriction = groups === undefined ? {} : { groups: new Set(groups) }
  const targets = entry.upstreams.flatMap((name) =>
    upstreams
      .filter(({ upstream }) => upstream.name === name)
      .map(({ upstream }) => ({
        upstream,
        model: upstreamModel,
        ...tokenizerFile,
        ...restriction,
      })),
  )
  return {
    id: entry.name,
    mode: entry.mode,
    capabilities: entry.capabilities,
    contextWindow: entry.contextWindow ?? null,
    created: 0,
    ownedBy: entry.upstreams[0] ?? 'sluice',
    aliases: entry.aliases,
    targets,
    isRestricted: groups !== undefined,
  }
}

function listedModel(listed: UpstreamModel, target: Target): Model {
  return {
    id: listed.id,
    mode: 'generate',
    capabilities: listed.capabilities ?? [],
    contextWindow: listed.contextWindow,
    created: listed.created ?? 0,
    ownedBy: listed.ownedBy ?? target.upstream.name,
    aliases: [],
    targets: [target],
    isRestricted: target.groups !== undefined,
  }
}
