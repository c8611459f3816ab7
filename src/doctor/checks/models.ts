import type { Config, ModelConfig } from '#config/schema.ts'
import { type Finding, fail, ok, skip, warn } from '#doctor/finding.ts'
import type { UpstreamListing } from './upstreams.ts'

/** Compares the configured models with the lists of the upstreams. */
export function modelFindings(
  config: Pick<Config, 'model' | 'retrieval'>,
  listings: readonly UpstreamListing[],
): Finding[] {
  return [
    ...listedFindings(config.model, listings),
    embeddingFinding(config),
    rerankFinding(config),
  ]
}

function listedFindings(
  models: readonly ModelConfig[],
  listings: readonly UpstreamListing[],
): Finding[] {
  const check = 'models'
  if (models.length === 0) return [ok(check, 'as listed by the upstreams')]
  const checked = models.map((model) => ({ model, ...listingOf(model, listings) }))
  const listed = checked.filter(({ isListed }) => isListed).length
  const warnings = checked
    .filter(({ isListed, isKnown }) => !isListed && isKnown)
    .map(({ model }) => {
      const { name, upstreamModel = name, upstreams } = model
      return warn(
        `model "${name}"`,
        `${upstreams.join(', ')} does not list "${upstreamModel}"`,
        'Correct upstream_model, or load the model there; requests for it will probably fail.',
      )
    })
  const unknown = checked.filter(({ isListed, isKnown }) => !isListed && !isKnown).length
  const rest = unknown === 0 ? '' : `; ${unknown} unknown, because their upstream has no list`
  return [
    ok(check, `${listed} of ${models.length} are listed by their upstreams${rest}`),
    ...warnings,
  ]
}

/** `isKnown`: whether all its upstreams have a list. */
function listingOf(
  { name, upstreamModel = name, upstreams }: ModelConfig,
  listings: readonly UpstreamListing[],
): { isListed: boolean; isKnown: boolean } {
  const lists = listings.filter((one) => upstreams.includes(one.name)).map(({ models }) => models)
  return {
    isListed: lists.some((models) => models?.includes(upstreamModel) === true),
    isKnown: lists.every((models) => models !== null),
  }
}

type Named = Pick<Config, 'model' | 'retrieval'>

function embeddingFinding({ model, retrieval }: Named): Finding {
  const check = 'embedding model'
  const name = retrieval.embeddingModel
  if (name !== 'local-hash') return modeFinding(model, { check, name, mode: 'embed' })
  return warn(
    check,
    'the built-in local-hash, which matches words and not meanings',
    'For semantic search, set retrieval.embedding_model (SLUICE_EMBEDDING_MODEL) to a [[model]] with mode = "embed".',
  )
}

function rerankFinding({ model, retrieval }: Named): Finding {
  const check = 'rerank model'
  const name = retrieval.rerankModel
  if (name === undefined) return skip(check, 'none is configured')
  return modeFinding(model, { check, name, mode: 'rerank' })
}

/** A model that is only listed by an upstream has the mode `generate`. */
function modeFinding(
  models: readonly ModelConfig[],
  { check, name, mode }: { check: string; name: string; mode: 'embed' | 'rerank' },
): Finding {
  const found = models.find((model) => model.name === name || model.aliases.includes(name))
  if (found?.mode === mode) return ok(check, `"${name}"`)
  const told =
    found === undefined ? `there is no [[model]] "${name}"` : `"${name}" has the mode ${found.mode}`
  return fail(check, told, `Add a [[model]] of this name with mode = "${mode}".`)
}
