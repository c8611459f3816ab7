import { type Static, Type } from '@sinclair/typebox'
import { choice, entry, text } from '#config/keys.ts'

const modelTarget = entry('An upstream that serves a model.', {
  upstream: text('Name of the upstream.'),
  model: Type.Optional(text('Name of the model there, if different.')),
  weight: Type.Optional(
    Type.Integer({
      description:
        'Relative share of requests with routing = "balanced"; by default that of the upstream.',
      minimum: 1,
    }),
  ),
  contextWindow: Type.Optional(
    Type.Integer({ description: 'Context window there in tokens, if different.', minimum: 1 }),
  ),
})

/** A `[[model]]` of the file. */
export const modelEntry = entry('A model with a name that you choose.', {
  name: text('Name that callers use.'),
  mode: choice('What the model does.', ['generate', 'embed', 'rerank', 'transcribe', 'speak']),
  upstreams: Type.Array(Type.String({ minLength: 1 }), {
    description: 'Upstreams that serve the model, in order of preference.',
    default: [],
  }),
  targets: Type.Array(modelTarget, {
    description:
      'The same with more detail, instead of upstreams: { upstream = "a", model = "name-there", weight = 2, context_window = 32768 }.',
    default: [],
  }),
  routing: choice(
    'How its upstreams share requests: the first one that works gets them all, or all get a share by weight, load and latency, and requests with the same prompt_cache_key go to the same one.',
    ['ordered', 'balanced'],
  ),
  hedgeMs: Type.Optional(
    Type.Integer({
      description:
        'A stream without output for this long also starts at another upstream, and the first output wins; the other one is aborted. Not with tools that the upstream runs. Off by default.',
      minimum: 1,
    }),
  ),
  fallbacks: Type.Array(Type.String({ minLength: 1 }), {
    description:
      'Models that answer instead while no upstream of this one works, and where the input does not fit its context window. Callers without access to them do not get them.',
    default: [],
  }),
  upstreamModel: Type.Optional(text('Name of the model at its upstreams, if different.')),
  aliases: Type.Array(Type.String({ minLength: 1 }), {
    description: 'Additional names that resolve to the model; they are listed as aliases.',
    default: [],
  }),
  capabilities: Type.Array(Type.String({ minLength: 1 }), {
    description: 'Labels shown in the model list, such as vision, tools, reasoning.',
    default: [],
  }),
  contextWindow: Type.Optional(
    Type.Integer({ description: 'Context window in tokens.', minimum: 1 }),
  ),
  groups: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description:
        'Groups whose members may use the model; for others it does not exist. By default everyone may.',
      minItems: 1,
    }),
  ),
  queryPrefix: Type.Optional(
    text('Prefix of queries for a model with mode = "embed", such as "query: ".'),
  ),
  passagePrefix: Type.Optional(
    text('Prefix of passages for a model with mode = "embed", such as "passage: ".'),
  ),
  tokenizer: Type.Optional(
    text('Path of the tokenizer.json of the model, for exact token counts.'),
  ),
})

type ModelEntry = Pick<
  Static<typeof modelEntry>,
  'name' | 'upstreams' | 'targets' | 'upstreamModel' | 'contextWindow'
>

/** The targets of a model in either form, with the name of the model at each. */
export function configuredTargets(given: ModelEntry) {
  const { name, upstreams, targets, upstreamModel = name, contextWindow } = given
  const listed = targets.length > 0 ? targets : upstreams.map((upstream) => ({ upstream }))
  return listed.map((target: ModelEntry['targets'][number]) => ({
    upstream: target.upstream,
    model: target.model ?? upstreamModel,
    weight: target.weight,
    contextWindow: target.contextWindow ?? contextWindow ?? null,
  }))
}
