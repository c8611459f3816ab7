import { Type } from '@sinclair/typebox'
import { nullable } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import { modelInfo } from './model-info.ts'

const tag = 'Messages'

const model = {
  type: 'model',
  id: 'vendor-model-llama-3.3-70b',
  display_name: 'llama-3.3-70b',
  created_at: '2026-11-21T09:30:00.000Z',
  max_input_tokens: 131_072,
  max_tokens: null,
  lifecycle: 'active',
  deprecated_at: null,
  retires_at: null,
  line: null,
  capabilities: null,
}

const modelPage = Type.Object(
  {
    data: Type.Array(modelInfo),
    has_more: Type.Boolean({ description: 'Whether another page follows in this direction.' }),
    first_id: nullable(Type.String(), 'The id of the first member of this page.'),
    last_id: nullable(Type.String(), 'The id of its last member.'),
  },
  { $id: 'ModelInfoPage' },
)

const query = Type.Object({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000, default: 20, description: 'Members of a page.' }),
  ),
  after_id: Type.Optional(Type.String({ description: 'Only what stands behind this id.' })),
  before_id: Type.Optional(
    Type.String({ description: 'Only what stands before this id. Not with `after_id`.' }),
  ),
})

export const compatModelOperations = {
  list: operation({
    tag,
    summary: 'List the models that you may call',
    description:
      'Models that generate text, and the agents that you see, newest first; what nobody dates stands behind the rest.',
    query,
    answers: {
      200: {
        description: 'A page of models.',
        content: json(modelPage, {
          data: [model],
          has_more: false,
          first_id: model.id,
          last_id: model.id,
        }),
      },
    },
    errors: { invalid_request: 'before_id does not go with after_id.' },
  }),
  show: operation({
    tag,
    summary: 'Show a model',
    description: 'By any of its names.',
    path: {
      '*': 'The name. One that holds slashes may be sent with or without encoding them.',
    },
    answers: { 200: { description: 'The model.', content: json(modelInfo, model) } },
    errors: { model_not_found: 'model: llama-4' },
  }),
}
