import { idExample } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import { modelList, modelListQuery, modelRecord } from './schema.ts'

const tag = 'Models'

const large = {
  id: 'llama-3.3-70b',
  object: 'model',
  created: 1_795_253_400,
  owned_by: 'vllm',
  mode: 'generate',
  capabilities: ['tools'],
  context_window: 131_072,
}
const agent = {
  ...large,
  id: `vendor-agent-${idExample}`,
  owned_by: 'agent',
  name: 'Contract reader',
  description: 'Answers questions about our contracts.',
}

export const modelOperations = {
  list: operation({
    tag,
    summary: 'List the models',
    description: `Every name that you may send as \`model\`: the models of this deployment, and behind them the
agents that you see, newest first. Aliases lead to a model and are not listed. The list is not paged.`,
    query: modelListQuery,
    answers: {
      200: {
        description: 'The models.',
        content: json(modelList, { object: 'list', data: [large, agent] }),
      },
    },
  }),
  show: operation({
    tag,
    summary: 'Show a model',
    description:
      'By any of its names: as it is listed, by an alias, or with the prefix that some clients want.',
    path: { '*': 'The name. One that holds slashes may be sent with or without encoding them.' },
    answers: { 200: { description: 'The model.', content: json(modelRecord, large) } },
    errors: { model_not_found: 'The model "llama-4" does not exist.' },
  }),
}
