import type { Config, ModelConfig } from '#config/schema.ts'
import { type Finding, fail, ok, skip, warn } from '#doctor/finding.ts'
import type { AskedUpstream } from './upstreams.ts'

/** The models that the configuration names, against what the upstreams list. */
export function modelFindings(
  config: Pick<Config, 'model' | 'retrieval'>,
  asked: readonly AskedUpstream[],
): Finding[] {
  return [...listedFindings(config.model, asked), embeddingFinding(config), rerankFinding(config)]
}

function listedFindings(
  models: readonly ModelConfig[],
  asked: readonly AskedUpstream[],
): Finding[] {
  const check = 'models'
  if (models.length === 0) return [ok(check, 'those that the upstreams list')]
  const judged = models.map((model) => ({ model, ...standingOf(model, asked) }))
  const listed = judged.filter(({ isListed }) => isListed).length
  const warnings = judged
    .filter(({ isListed, isKnown }) => !isListed && isKnown)
    .map(({ model }) => {
      const { name, upstreamModel = name, upstreams } = model
      return warn(
        `model "${name}"`,
        `${upstreams.join(', ')} does not list "${upstreamModel}"`,
        'Correct upstream_model, or load the model there; a request for it will most likely fail.',
      )
    })
  const unknown = judged.filter(({ isListed, isKnown }) => !isListed && !isKnown).length
  const rest = unknown === 0 ? '' : `; of ${unknown} the upstream does not tell`
  return [
    ok(check, `${listed} of ${models.length} are listed by their upstreams${rest}`),
    ...warnings,
  ]
}

/** `isKnown`: whether each of its upstreams told what it has. */
function standingOf(
  { name, upstreamModel = name, upstreams }: ModelConfig,
  asked: readonly AskedUpstream[],
): { isListed: boolean; isKnown: boolean } {
  const lists = asked.filter((one) => upstreams.includes(one.name)).map(({ models }) => models)
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
    'the built-in local-hash, which knows words by their letters and no meanings',
    'For a real search name a [[model]] of mode "embed" in retrieval.embedding_model (SLUICE_EMBEDDING_MODEL).',
  )
}

function rerankFinding({ model, retrieval }: Named): Finding {
  const check = 'rerank model'
  const name = retrieval.rerankModel
  if (name === undefined) return skip(check, 'none is configured')
  return modeFinding(model, { check, name, mode: 'rerank' })
}

/** What an upstream merely lists counts as a model that generates. */
function modeFinding(
  models: readonly ModelConfig[],
  { check, name, mode }: { check: string; name: string; mode: 'embed' | 'rerank' },
): Finding {
  const found = models.find((model) => model.name === name || model.aliases.includes(name))
  if (found?.mode === mode) return ok(check, `"${name}"`)
  const told =
    found === undefined ? `there is no [[model]] "${name}"` : `"${name}" is of mode ${found.mode}`
  return fail(check, told, `Add a [[model]] of this name with mode = "${mode}".`)
}
