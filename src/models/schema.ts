import { type Static, Type } from '@sinclair/typebox'
import { oneOf } from '#api/request-schema.ts'
import { nullable } from '#api/shapes.ts'
import type { Frozen } from '#lib/frozen.ts'
import type { AvailableModel } from './model-resolver.ts'

export const modelListQuery = Type.Object({
  client_version: Type.Optional(
    Type.String({
      description:
        'Sent by coding clients. The response then holds `models` beside `data`: the models that generate text, in the format of such clients.',
    }),
  ),
})

export const modelRecord = Type.Object(
  {
    id: Type.String({ description: 'The value of `model` in requests.' }),
    object: Type.Literal('model'),
    created: Type.Integer({
      description: 'Unix seconds; 0 if no upstream reports it.',
    }),
    owned_by: Type.String({
      description: 'As the upstream reports it, or the name of the upstream; `agent` for agents.',
    }),
    alias_of: Type.Optional(
      Type.String({ description: 'Of an alias: the `id` of the model that it stands for.' }),
    ),
    name: Type.Optional(Type.String({ description: 'Of an agent.' })),
    description: Type.Optional(nullable(Type.String(), 'Of an agent.')),
    mode: oneOf(
      ['generate', 'embed', 'rerank', 'transcribe', 'speak'],
      'The kind of requests that the model serves.',
    ),
    capabilities: Type.Array(Type.String(), {
      description: 'Such as `tools`, `vision` and `reasoning`; empty if unknown.',
    }),
    context_window: nullable(Type.Integer(), 'In tokens, if known.'),
    voices: Type.Optional(
      Type.Array(Type.String(), { description: 'Of a model that speaks, if its upstream tells.' }),
    ),
  },
  { $id: 'Model' },
)
export type ModelRecord = Frozen<Static<typeof modelRecord>>

/** A model outside the catalogue: the built-in embedder, and names of speech engines. */
export type OtherModel = { readonly id: string; readonly mode: ModelRecord['mode'] }

export function renderOtherModel({ id, mode }: OtherModel): ModelRecord {
  return {
    id,
    object: 'model',
    created: 0,
    owned_by: 'sluice',
    mode,
    capabilities: [],
    context_window: null,
  }
}

export function renderModel(model: AvailableModel): ModelRecord {
  return {
    id: model.id,
    object: 'model',
    created: model.created,
    owned_by: model.ownedBy,
    ...(model.aliasOf === null ? {} : { alias_of: model.aliasOf }),
    ...(model.isAgent ? { name: model.displayName, description: model.description } : {}),
    mode: model.mode,
    capabilities: model.capabilities,
    context_window: model.contextWindow,
    ...(model.voices === undefined ? {} : { voices: model.voices }),
  }
}

const codingModel = Type.Object(
  {
    slug: Type.String({ description: 'The value of `model` in requests.' }),
    display_name: Type.String(),
    description: Type.Union([Type.String(), Type.Null()]),
    supported_reasoning_levels: Type.Array(
      Type.Object({ effort: Type.String(), description: Type.String() }),
    ),
    default_reasoning_level: Type.Union([Type.String(), Type.Null()]),
    supports_reasoning_summaries: Type.Boolean(),
    shell_type: Type.String(),
    apply_patch_tool_type: Type.String(),
    supports_parallel_tool_calls: Type.Boolean(),
    experimental_supported_tools: Type.Array(Type.String()),
    support_verbosity: Type.Boolean(),
    input_modalities: Type.Array(Type.String()),
    context_window: Type.Union([Type.Integer(), Type.Null()]),
    truncation_policy: Type.Object({ mode: Type.String(), limit: Type.Integer() }),
    visibility: Type.String(),
    supported_in_api: Type.Boolean(),
    priority: Type.Integer(),
    base_instructions: Type.String(),
  },
  { $id: 'CodingModel', description: 'A model in the format of terminal coding clients.' },
)
export type CodingModel = Frozen<Static<typeof codingModel>>

export const modelList = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(modelRecord),
    models: Type.Optional(
      Type.Array(codingModel, { description: 'Only if `client_version` was sent.' }),
    ),
  },
  { $id: 'ModelList' },
)
