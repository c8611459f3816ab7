import { type Static, Type } from '@sinclair/typebox'
import { oneOf } from '#api/request-schema.ts'
import { instant, nullable } from '#api/shapes.ts'
import type { Frozen } from '#lib/frozen.ts'
import type { JsonObject } from '#lib/json.ts'
import type { Agent, AgentSampling, AgentTool } from './agents.ts'

const numberOrNull = () => Type.Union([Type.Number(), Type.Null()])

const agentFunction = Type.Object({
  type: Type.Literal('function'),
  name: Type.String(),
  description: nullable(Type.String(), 'For the model.'),
  parameters: nullable(Type.Unsafe<JsonObject>(Type.Object({})), 'A JSON Schema.'),
  strict: nullable(Type.Boolean(), 'Whether arguments must conform to the schema.'),
})

const agentServer = Type.Object({
  type: Type.Literal('mcp'),
  server_label: Type.String(),
  allowed_tools: nullable(Type.Array(Type.String()), 'Names of its tools; null: all.'),
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
  { description: 'Defaults for requests; null: the default of the model.' },
)

const agentSpeech = Type.Object({
  model: Type.String({ description: 'A model of mode `speak`.' }),
  voice: Type.String(),
  speed: numberOrNull(),
  instructions: nullable(Type.String(), 'How to speak.'),
})

const agentVisibility = Type.Union(
  [
    Type.Object({ kind: Type.Union([Type.Literal('owner'), Type.Literal('everyone')]) }),
    Type.Object({ kind: Type.Literal('groups'), groups: Type.Array(Type.String()) }),
    Type.Object({ kind: Type.Literal('users'), users: Type.Array(Type.String()) }),
  ],
  { description: 'Who may see and call the agent besides its owner.' },
)

/** Visible to principals who may edit the agent. */
const definitionFields = {
  instructions: nullable(Type.String(), 'Precede the instructions of the request.'),
  tools: Type.Array(Type.Union([agentFunction, agentServer])),
  collections: Type.Array(
    Type.Object({
      id: Type.String({ format: 'uuid' }),
      name: nullable(Type.String(), 'Null if it was deleted or you do not see it.'),
    }),
    { description: 'The collections to search.' },
  ),
  sampling: agentSampling,
  speech: nullable(agentSpeech, 'How its answers are spoken; null: it has no voice.'),
  visibility: agentVisibility,
}
const agentDefinition = Type.Object(definitionFields)

export const agentRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('agent'),
    model_id: Type.String({ description: 'The value of `model` in requests.' }),
    name: Type.String(),
    description: nullable(Type.String(), 'The purpose of the agent.'),
    model: nullable(
      Type.String(),
      'The model that it is based on; null if you may neither use it nor change the agent.',
    ),
    status: oneOf(['ready', 'model_unavailable'], 'Whether its model is available.'),
    can_speak: Type.Boolean({
      description: 'Whether `POST /v1/audio/speech` takes it as `agent`.',
    }),
    is_owner: Type.Boolean({ description: 'Whether you own it.' }),
    is_editable: Type.Boolean({
      description:
        'Whether you may change it. If not, the fields from `instructions` on are omitted.',
    }),
    created_at: instant('Time of creation'),
    updated_at: instant('Time of the last change'),
    ...Type.Partial(agentDefinition).properties,
  },
  { $id: 'Agent' },
)

type AgentRecord = Frozen<Static<typeof agentRecord>>
type DefinitionRecord = Frozen<Static<typeof agentDefinition>>

export type AgentView = {
  readonly modelId: string
  readonly isReady: boolean
  readonly isOwner: boolean
  readonly isEditable: boolean
  /** By id, of the collections that the caller sees. */
  readonly collectionNames: ReadonlyMap<string, string>
}

/** Principals who may only call the agent do not see its definition. */
export function renderAgent(agent: Agent, view: AgentView): AgentRecord {
  return {
    id: agent.id,
    object: 'agent',
    model_id: view.modelId,
    name: agent.name,
    description: agent.description,
    model: view.isReady || view.isEditable ? agent.model : null,
    status: view.isReady ? 'ready' : 'model_unavailable',
    can_speak: agent.speech !== null,
    is_owner: view.isOwner,
    is_editable: view.isEditable,
    created_at: agent.createdAt.toISOString(),
    updated_at: agent.updatedAt.toISOString(),
    ...(view.isEditable ? renderDefinition(agent, view) : {}),
  }
}

function renderDefinition(agent: Agent, { collectionNames }: AgentView): DefinitionRecord {
  return {
    instructions: agent.instructions,
    tools: agent.tools.map(renderTool),
    collections: agent.collections.map((id) => ({ id, name: collectionNames.get(id) ?? null })),
    sampling: renderSampling(agent.sampling),
    speech: agent.speech,
    visibility: agent.visibility,
  }
}

function renderTool(tool: AgentTool): DefinitionRecord['tools'][number] {
  if (tool.type === 'function') return tool
  return {
    type: 'mcp',
    server_label: tool.label,
    allowed_tools: tool.allowed,
    require_approval: tool.approval,
  }
}

function renderSampling(sampling: AgentSampling): DefinitionRecord['sampling'] {
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
