import { type Static, Type } from '@sinclair/typebox'
import { instant, nullable } from '#api/shapes.ts'
import type { Frozen } from '#lib/frozen.ts'

const supported = Type.Object({ supported: Type.Boolean() })
const supportedOr = Type.Union([supported, Type.Null()])

const capabilities = Type.Object({
  batch: supported,
  citations: supported,
  code_execution: supported,
  context_management: supported,
  effort: Type.Object({
    supported: Type.Boolean(),
    low: supported,
    medium: supported,
    high: supported,
    xhigh: supportedOr,
    max: supported,
  }),
  image_input: supported,
  pdf_input: supported,
  server_tools: Type.Object({
    supported: Type.Boolean(),
    code_execution: supported,
    web_search: supported,
  }),
  structured_outputs: supported,
  thinking: Type.Object({
    supported: Type.Boolean(),
    types: Type.Object({
      adaptive: supported,
      between_tools: supported,
      disabled: supported,
      enabled: supported,
    }),
  }),
})

/** One entry of the model list under /compat. */
export const modelInfo = Type.Object(
  {
    type: Type.Literal('model'),
    id: Type.String({
      description:
        'The value for `model`, with a prefix that some clients require; the name without it works as well. The suffix `[1m]` tells clients that the context window has a million tokens.',
    }),
    display_name: Type.String(),
    created_at: instant('When the model was created; 1970 if unknown'),
    max_input_tokens: nullable(Type.Integer(), 'The context window, if known.'),
    max_tokens: Type.Null(),
    lifecycle: Type.Literal('active'),
    deprecated_at: Type.Null(),
    retires_at: Type.Null(),
    line: Type.Null(),
    capabilities: nullable(capabilities, 'Null if unknown.'),
  },
  { $id: 'ModelInfo' },
)
export type ModelInfo = Frozen<Static<typeof modelInfo>>
