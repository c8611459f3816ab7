import { type Static, Type } from '@sinclair/typebox'
import { nullable } from '#api/shapes.ts'
import type { Frozen } from '#lib/frozen.ts'

/** The query of the list. */
export const modelListQuery = Type.Object({
  client_version: Type.Optional(
    Type.String({
      description:
        'What coding clients send of themselves. The answer then holds `models` beside `data`: the models that generate text, as such clients read them.',
    }),
  ),
})

export const modelRecord = Type.Object(
  {
    id: Type.String({ description: 'What to send as `model`.' }),
    object: Type.Literal('model'),
    created: Type.Integer({
      description: 'Unix seconds; where nobody tells it, when the gateway was started.',
    }),
    owned_by: Type.String({
      description: 'What its upstream says, or the name of the upstream; `agent` for agents.',
    }),
    name: Type.Optional(Type.String({ description: 'Of an agent.' })),
    description: Type.Optional(nullable(Type.String(), 'Of an agent.')),
    mode: Type.Union(
      [
        Type.Literal('generate'),
        Type.Literal('embed'),
        Type.Literal('rerank'),
        Type.Literal('transcribe'),
      ],
      { description: 'What it does, and so which routes take it.' },
    ),
    capabilities: Type.Array(Type.String(), {
      description: 'Free words, such as `tools`, `vision`, `reasoning`; none where nobody tells.',
    }),
    context_window: nullable(Type.Integer(), 'In tokens, where it is known.'),
  },
  { $id: 'Model' },
)
export type ModelRecord = Frozen<Static<typeof modelRecord>>

const codingModel = Type.Object(
  {
    slug: Type.String({ description: 'What to send as `model`.' }),
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
  { $id: 'CodingModel', description: 'A model as coding clients in a terminal read it.' },
)
export type CodingModel = Frozen<Static<typeof codingModel>>

export const modelList = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(modelRecord),
    models: Type.Optional(
      Type.Array(codingModel, { description: 'Only where `client_version` was sent.' }),
    ),
  },
  { $id: 'ModelList' },
)
