import type { HostedToolRequest } from '#hosted-tools/hosted-tools.ts'
import type { McpToolRequest } from '#hosted-tools/mcp/request.ts'
import type { FunctionTool, GenerationRequest, Sampling, Tool } from '#inference/request.ts'
import { withCollections } from '#retrieval/file-search/request.ts'
import type { Agent, AgentFunction, AgentSampling, AgentServer } from './agents.ts'

/**
 * A request to an agent as the request to its model that is meant. What the caller says goes before
 * what the agent says, except for the instructions, where the agent's come first and the caller's
 * follow. The agent's tools come first too: they are the same for every caller, and what is the same
 * at the head of a prompt is computed once.
 */
export function applyAgent(request: GenerationRequest, agent: Agent | null): GenerationRequest {
  if (agent === null) return request
  // Not the request any more that its caller wrote.
  const { origin: _, ...rest } = request
  return {
    ...rest,
    instructions: joinTexts(agent.instructions, request.instructions),
    tools: [...functionsOf(agent, request.tools), ...request.tools],
    sampling: withDefaults(request.sampling, agent.sampling),
    reasoning: {
      ...request.reasoning,
      effort: effortOf(request.reasoning, agent.sampling),
    },
  }
}

/**
 * What is asked of the tools that run here, with those of the agent and the collections that it
 * searches. Where callers have no way to approve a call, what waits for approval is left out.
 */
export function withAgentTools(
  asked: HostedToolRequest,
  agent: Agent | null,
  { approvals = true }: { approvals?: boolean } = {},
): HostedToolRequest {
  if (agent === null) return asked
  const taken = new Set(asked.mcp.map(({ label }) => label))
  const isAdded = (tool: AgentServer) =>
    !taken.has(tool.label) && (approvals || tool.approval === 'never')
  const added = agent.tools.flatMap((tool, index) =>
    tool.type === 'mcp' && isAdded(tool) ? [serverRequest(tool, index)] : [],
  )
  return {
    ...asked,
    mcp: [...added, ...asked.mcp],
    fileSearch: withCollections(asked.fileSearch, agent.collections),
  }
}

function joinTexts(first: string | null, second: string | null): string | null {
  const texts = [first, second].filter((text) => text !== null && text !== '')
  return texts.length === 0 ? null : texts.join('\n\n')
}

function functionsOf(agent: Agent, own: readonly Tool[]): readonly FunctionTool[] {
  const taken = new Set(own.flatMap((tool) => (tool.namespace === undefined ? [tool.name] : [])))
  const isAdded = (tool: Agent['tools'][number]): tool is AgentFunction =>
    tool.type === 'function' && !taken.has(tool.name)
  return agent.tools.filter(isAdded)
}

function withDefaults(asked: Sampling, defaults: AgentSampling): Sampling {
  return {
    ...asked,
    temperature: asked.temperature ?? defaults.temperature,
    topP: asked.topP ?? defaults.topP,
    topK: asked.topK ?? defaults.topK,
    presencePenalty: asked.presencePenalty ?? defaults.presencePenalty,
    frequencyPenalty: asked.frequencyPenalty ?? defaults.frequencyPenalty,
    maxOutputTokens: asked.maxOutputTokens ?? defaults.maxOutputTokens,
  }
}

/** Who says how many tokens may be thought has said how hard to think. */
function effortOf(
  asked: GenerationRequest['reasoning'],
  { reasoningEffort }: AgentSampling,
): string | null {
  return asked.effort ?? (asked.budgetTokens === undefined ? reasoningEffort : null)
}

function serverRequest(tool: AgentServer, index: number): McpToolRequest {
  return {
    path: `agent.tools[${index}]`,
    label: tool.label,
    url: null,
    description: null,
    authorization: null,
    headers: {},
    allowed: tool.allowed === null ? null : { names: tool.allowed, readOnly: null },
    approval: tool.approval,
  }
}
