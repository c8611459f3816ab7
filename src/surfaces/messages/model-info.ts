import { type Static, Type } from '@sinclair/typebox'
import { instant, nullable } from '#api/shapes.ts'
import { AppError } from '#lib/errors.ts'
import type { Frozen } from '#lib/frozen.ts'
import type { AvailableModel } from '#models/model-resolver.ts'
import { longContextMark } from '#models/names.ts'

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
    max_tokens: nullable(Type.Integer(), 'Always null: upstreams do not report it.'),
    lifecycle: Type.Literal('active'),
    deprecated_at: nullable(Type.String(), 'Always null.'),
    retires_at: nullable(Type.String(), 'Always null.'),
    line: nullable(Type.String(), 'Always null.'),
    capabilities: nullable(capabilities, 'Null if unknown.'),
  },
  { $id: 'ModelInfo' },
)
export type ModelInfo = Frozen<Static<typeof modelInfo>>

/** Models with at least this window get a second name that announces a million tokens. */
const longContextTokens = 1_000_000

/**
 * The list entries of a model. A model with a long context window has a second entry whose name says
 * so, since some clients assume a window of 200,000 tokens for every name that they do not know.
 */
export function modelInfos(model: AvailableModel): readonly [ModelInfo, ...ModelInfo[]] {
  const plain = renderEntry(model, { id: model.prefixedId, displayName: model.displayName })
  const isLong = (model.contextWindow ?? 0) >= longContextTokens
  if (!isLong || plain.id.endsWith(longContextMark)) return [plain]
  const id = model.prefixedId + longContextMark
  return [plain, renderEntry(model, { id, displayName: `${model.displayName} (1M context)` })]
}

/** Newest first. Models without a date come last, in the same order on every replica. */
export function newestFirst(models: readonly AvailableModel[]): readonly AvailableModel[] {
  const at = ({ created }: AvailableModel) => created
  return models.toSorted(
    (left, right) => at(right) - at(left) || (left.prefixedId < right.prefixedId ? -1 : 1),
  )
}

function renderEntry(model: AvailableModel, names: { id: string; displayName: string }): ModelInfo {
  return {
    type: 'model',
    id: names.id,
    display_name: names.displayName,
    created_at: new Date(model.created * 1000).toISOString(),
    max_input_tokens: model.contextWindow,
    max_tokens: null,
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    line: null,
    capabilities: renderCapabilities(model.capabilities),
  }
}

/** Null if the capabilities of the model are unknown. */
function renderCapabilities(capabilities: readonly string[]): ModelInfo['capabilities'] {
  if (capabilities.length === 0) return null
  const has = (name: string) => ({ supported: capabilities.includes(name) })
  const reasons = has('reasoning')
  return {
    batch: unsupported,
    citations: unsupported,
    code_execution: unsupported,
    context_management: unsupported,
    effort: {
      ...reasons,
      low: reasons,
      medium: reasons,
      high: reasons,
      xhigh: null,
      max: unsupported,
    },
    image_input: has('vision'),
    pdf_input: has('pdf'),
    server_tools: { ...unsupported, code_execution: unsupported, web_search: unsupported },
    // The gateway validates the output itself.
    structured_outputs: { supported: true },
    thinking: {
      ...reasons,
      types: { adaptive: reasons, between_tools: unsupported, disabled: reasons, enabled: reasons },
    },
  }
}

const unsupported = { supported: false }

/** The error of the protocol, the same for an unknown model and for one that the user may not call. */
export function unknownModel(name: string, cause?: unknown): AppError {
  return new AppError('model_not_found', `model: ${name}`, { param: 'model', cause })
}
