import type { Agent, AgentSampling, AgentTool } from './agents.ts'
import type { AgentMaking, AgentRecord } from './answer-schema.ts'

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
