import { type Static, Type } from '@sinclair/typebox'
import { instant, nullable } from '#api/shapes.ts'
import type { Frozen } from '#lib/frozen.ts'
import type { JsonObject } from '#lib/json.ts'
import type { Agent, AgentSampling, AgentTool } from './agents.ts'

const names = (description: string) => Type.Array(Type.String(), { description })
const numberOrNull = () => Type.Union([Type.Number(), Type.Null()])

const agentFunction = Type.Object({
  type: Type.Literal('function'),
  name: Type.String(),
  description: nullable(Type.String(), 'What the model reads about it.'),
  parameters: nullable(Type.Unsafe<JsonObject>(Type.Object({})), 'A JSON Schema.'),
  strict: nullable(Type.Boolean(), 'Whether arguments must keep to the schema.'),
})

const agentServer = Type.Object({
  type: Type.Literal('mcp'),
  server_label: Type.String(),
  allowed_tools: nullable(Type.Array(Type.String()), 'Names of its tools; null: all of them.'),
  require_approval: Type.Union([Type.Literal('always'), Type.Literal('never')]),
})

const agentSampling = Type.Object(
  {
    temperature: numberOrNull(),
    top_p: numberOrNull(),
    top_k: numberOrNull(),
    presence_penalty: numberOrNull(),
    frequency_penalty: numberOrNull(),
    max_output_tokens: numberOrNull(),
    reasoning_effort: Type.Union([Type.String(), Type.Null()]),
  },
  { description: 'What holds where a caller says nothing; null: the model decides.' },
)

const agentVisibility = Type.Union(
  [
    Type.Object({ kind: Type.Union([Type.Literal('owner'), Type.Literal('everyone')]) }),
    Type.Object({ kind: Type.Literal('groups'), groups: Type.Array(Type.String()) }),
    Type.Object({ kind: Type.Literal('users'), users: Type.Array(Type.String()) }),
  ],
  { description: 'Who sees and may call it, beside its owner.' },
)

/** What only those see who may change the agent. */
const making = {
  instructions: nullable(Type.String(), 'They stand before those of whoever calls.'),
  tools: Type.Array(Type.Union([agentFunction, agentServer])),
  collections: names('Collections that it may search.'),
  sampling: agentSampling,
  visibility: agentVisibility,
}
const agentMaking = Type.Object(making)

/** An agent as its reader sees it. */
export const agentRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('agent'),
    model_id: Type.String({ description: 'What to send as `model`.' }),
    name: Type.String(),
    description: nullable(Type.String(), 'What it is for.'),
    model: Type.String({ description: 'The model that it is made of.' }),
    status: Type.Union([Type.Literal('ready'), Type.Literal('model_unavailable')], {
      description: 'Whether its model is there.',
    }),
    is_owner: Type.Boolean({ description: 'Whether it is yours.' }),
    is_editable: Type.Boolean({
      description:
        'Whether you may change it. The fields from `instructions` on are only there if so.',
    }),
    created_at: instant('When it was made'),
    updated_at: instant('When it was changed last'),
    ...Type.Partial(agentMaking).properties,
  },
  { $id: 'Agent' },
)

type AgentRecord = Frozen<Static<typeof agentRecord>>
type AgentMaking = Frozen<Static<typeof agentMaking>>

/**
 * An agent as its reader sees it. How it is made (instructions, tools, whom it is shared with) is
 * for those who may change it; who only calls it learns what it is for.
 */
export function renderAgent(
  agent: Agent,
  seen: { modelId: string; isReady: boolean; isOwner: boolean; isEditable: boolean },
): AgentRecord {
  return {
    id: agent.id,
    object: 'agent',
    model_id: seen.modelId,
    name: agent.name,
    description: agent.description,
    model: agent.model,
    status: seen.isReady ? 'ready' : 'model_unavailable',
    is_owner: seen.isOwner,
    is_editable: seen.isEditable,
    created_at: agent.createdAt.toISOString(),
    updated_at: agent.updatedAt.toISOString(),
    ...(seen.isEditable ? renderMaking(agent) : {}),
  }
}

function renderMaking(agent: Agent): AgentMaking {
  return {
    instructions: agent.instructions,
    tools: agent.tools.map(renderTool),
    collections: agent.collections,
    sampling: renderSampling(agent.sampling),
    visibility: agent.visibility,
  }
}

function renderTool(tool: AgentTool): AgentMaking['tools'][number] {
  if (tool.type === 'function') return tool
  return {
    type: 'mcp',
    server_label: tool.label,
    allowed_tools: tool.allowed,
    require_approval: tool.approval,
  }
}

function renderSampling(sampling: AgentSampling): AgentMaking['sampling'] {
  return {
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
    max_output_tokens: sampling.maxOutputTokens,
    reasoning_effort: sampling.reasoningEffort,
  }
}
