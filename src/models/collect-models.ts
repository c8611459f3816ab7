import type { ModelConfig } from '#config/schema.ts'
import type { Target, UpstreamModel } from '#inference/upstream.ts'
import { compileAccessRules } from './access-rules.ts'
import type { CatalogueSources, ConfiguredUpstream, Model } from './catalogue.ts'
import { configuredTargets } from './model-config.ts'

/** The models that an upstream lists; null until its first response. */
type Listing = {
  readonly source: ConfiguredUpstream
  readonly models: readonly UpstreamModel[] | null
}

type Names = { readonly models: Map<string, Model>; readonly aliases: Map<string, Model> }

/** Models of the configuration take precedence over listed models of the same name. */
export function collectModels(deps: CatalogueSources, listings: readonly Listing[]): Names {
  const models = new Map<string, Model>()
  const aliases = new Map<string, Model>()
  for (const entry of deps.config.model) {
    const model = configuredModel(entry, deps.upstreams)
    models.set(model.id, model)
    for (const alias of entry.aliases) aliases.set(alias, model)
  }
  const configured = new Set([...models.keys(), ...aliases.keys()])
  for (const { source, models: listed } of listings) {
    const groupsOf = compileAccessRules(source.access)
    for (const entry of listed ?? []) {
      if (configured.has(entry.id)) continue
      // Upstreams that list the same model share its load.
      const { upstream, weight } = source
      const groups = groupsOf([entry.id])
      const restriction = groups === undefined ? {} : { groups }
      const { contextWindow } = entry
      const target = { upstream, model: entry.id, tier: 0, weight, contextWindow, ...restriction }
      const known = models.get(entry.id)
      models.set(
        entry.id,
        known === undefined ? listedModel(entry, target) : withTarget(known, target),
      )
      const model = models.get(entry.id)
      for (const alias of entry.aliases ?? []) {
        if (model !== undefined && !configured.has(alias)) aliases.set(alias, model)
      }
    }
  }
  for (const { name, aliases: others, fallbacks } of deps.config.model) {
    const model = models.get(name)
    if (model === undefined || fallbacks.length === 0) continue
    const standIns = fallbacks.map((each) => models.get(each) ?? aliases.get(each))
    const complete = standIns.reduce<Model>((sum, each) => withFallback(sum, each), model)
    for (const spelling of others) aliases.set(spelling, complete)
    models.set(name, complete)
  }
  return { models, aliases }
}

/** With the targets of another model, except those of its own fallbacks, after all others. */
function withFallback(model: Model, other: Model | undefined): Model {
  if (other === undefined) return model
  const lastTier = Math.max(...model.targets.map(({ tier = 0 }) => tier))
  const targets = other.targets
    .filter(({ isFallback }) => isFallback !== true)
    .map((target) => ({
      ...target,
      tier: lastTier + 1 + (target.tier ?? 0),
      isFallback: true,
      modelId: other.id,
    }))
  return targets.reduce<Model>(withTarget, model)
}

function withTarget(model: Model, target: Target): Model {
  const isRestricted = model.isRestricted || target.groups !== undefined
  return { ...model, targets: [...model.targets, target], isRestricted }
}

function configuredModel(entry: ModelConfig, upstreams: readonly ConfiguredUpstream[]): Model {
  const { groups, tokenizer, routing, hedgeMs } = entry
  const hedging = hedgeMs === undefined ? {} : { hedgeMs }
  const tokenizerFile = tokenizer === undefined ? {} : { tokenizerFile: tokenizer }
  const restriction = groups === undefined ? {} : { groups: new Set(groups) }
  const byName = new Map(upstreams.map((each) => [each.upstream.name, each]))
  const targets = configuredTargets(entry).flatMap((given, index): Target[] => {
    const { upstream, weight } = byName.get(given.upstream) ?? {}
    if (upstream === undefined) return []
    return [
      {
        upstream,
        model: given.model,
        tier: routing === 'balanced' ? 0 : index,
        weight: given.weight ?? weight ?? 1,
        contextWindow: given.contextWindow,
        ...tokenizerFile,
        ...hedging,
        ...restriction,
      },
    ]
  })
  return {
    id: entry.name,
    mode: entry.mode,
    capabilities: entry.capabilities,
    contextWindow: entry.contextWindow ?? targets[0]?.contextWindow ?? null,
    created: 0,
    ownedBy: targets[0]?.upstream.name ?? 'sluice',
    aliases: entry.aliases,
    targets,
    isRestricted: groups !== undefined,
  }
}

function listedModel(listed: UpstreamModel, target: Target): Model {
  return {
    id: listed.id,
    mode: listed.mode ?? 'generate',
    capabilities: listed.capabilities ?? [],
    contextWindow: listed.contextWindow,
    ...(listed.voices === undefined ? {} : { voices: listed.voices }),
    created: listed.created ?? 0,
    ownedBy: listed.ownedBy ?? target.upstream.name,
    aliases: listed.aliases ?? [],
    targets: [target],
    isRestricted: target.groups !== undefined,
  }
}
