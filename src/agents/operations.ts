import { deleted, idExample, instantExample, listExample, listOf, pageQuery } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import { agentRecord } from './answer-schema.ts'
import { agentChange, newAgent } from './schema.ts'

const tag = 'Agents'

const wish = {
  name: 'Contract reader',
  description: 'Answers questions about our contracts.',
  model: 'llama-3.3-70b',
  instructions: 'Answer in the language of the question, and name the clause.',
  collections: ['contracts'],
  sampling: { temperature: 0.2 },
  visibility: { kind: 'groups', groups: ['legal'] },
}

const made = {
  id: idExample,
  object: 'agent',
  model_id: `vendor-agent-${idExample}`,
  name: wish.name,
  description: wish.description,
  model: wish.model,
  status: 'ready',
  is_owner: true,
  is_editable: true,
  created_at: instantExample,
  updated_at: instantExample,
  instructions: wish.instructions,
  tools: [],
  collections: wish.collections,
  sampling: {
    temperature: 0.2,
    top_p: null,
    top_k: null,
    presence_penalty: null,
    frequency_penalty: null,
    max_output_tokens: null,
    reasoning_effort: null,
  },
  visibility: wish.visibility,
}

const agent = (description: string) => ({ description, content: json(agentRecord, made) })
const path = { id: 'The id of the agent, without the prefix of `model_id`.' }
const absent = { not_found: `There is no agent with the id "${idExample}".` } as const
const foreign = { permission_denied: 'Only its owner may change this agent.' } as const
const badFields = [
  '"name" must not be empty.',
  { code: 'model_not_found', message: '"model" must name a model that generates text.' },
] as const
const unknown = { unknown_field: '"tempreature" is not a known field.' } as const

export const agentOperations = {
  create: operation({
    tag,
    summary: 'Create an agent',
    description: `A stored configuration that is called like a model, by its \`model_id\`. What a caller sends
goes before what the agent says, but for the instructions: the agent's come first, the caller's follow.
A field that is null counts as not given. All tools together may have 262,144 characters as JSON.`,
    body: { content: json(newAgent, wish) },
    answers: { 200: agent('The agent.') },
    errors: {
      ...unknown,
      unprocessable: [
        ...badFields,
        {
          code: 'too_many_agents',
          message: 'You have 200 agents, which is the limit; delete one first.',
        },
      ],
    },
  }),
  list: operation({
    tag,
    summary: 'List the agents that you may call',
    description: 'Your own and those shared with you, newest first.',
    query: pageQuery,
    answers: {
      200: {
        description: 'A page of agents.',
        content: json(listOf(agentRecord), listExample(made)),
      },
    },
    errors: { unprocessable: '"limit" must be a whole number from 1 to 100.' },
  }),
  show: operation({
    tag,
    summary: 'Show an agent',
    description: 'One that is not shared with you is not found.',
    path,
    answers: { 200: agent('The agent.') },
    errors: absent,
  }),
  change: operation({
    tag,
    summary: 'Change an agent',
    description: `A field that is given takes the place of the whole field; null puts it back to its default.
Who may edit the configuration (\`can_edit_config\`) may also change what others have shared with them.`,
    path,
    body: { content: json(agentChange, { instructions: wish.instructions, description: null }) },
    answers: { 200: agent('The agent as it is now.') },
    errors: { ...absent, ...foreign, ...unknown, unprocessable: badFields },
  }),
  remove: operation({
    tag,
    summary: 'Delete an agent',
    description: 'From then on nobody can call it. Answers that it gives just now are finished.',
    path,
    answers: {
      200: {
        description: 'It is deleted.',
        content: json(deleted('agent.deleted'), {
          id: idExample,
          object: 'agent.deleted',
          deleted: true,
        }),
      },
    },
    errors: { ...absent, ...foreign },
  }),
}
