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
        'What to send as `model`, with a prefix that some clients want; the bare name does as well. One that ends in `[1m]` tells clients of a window of a million tokens.',
    }),
    display_name: Type.String(),
    created_at: instant('When it was made; 1970 where nobody tells'),
    max_input_tokens: nullable(Type.Integer(), 'Its context window, where it is known.'),
    max_tokens: Type.Null(),
    lifecycle: Type.Literal('active'),
    deprecated_at: Type.Null(),
    retires_at: Type.Null(),
    line: Type.Null(),
    capabilities: nullable(capabilities, 'Null where nobody says what the model can.'),
  },
  { $id: 'ModelInfo' },
)
export type ModelInfo = Frozen<Static<typeof modelInfo>>
