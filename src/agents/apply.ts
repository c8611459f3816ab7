import type { HostedToolRequest } from '#hosted-tools/hosted-tools.ts'
import type { McpToolRequest } from '#hosted-tools/mcp/request.ts'
import type { FunctionTool, GenerationRequest, Sampling, Tool } from '#inference/request.ts'
import { withCollections } from '#retrieval/file-search/request.ts'
import type { Agent, AgentFunction, AgentSampling, AgentServer } from './agents.ts'

/**
 * Applies the definition of an agent to a request. Values of the request take precedence, except that
 * the agent's instructions and tools come first: they are the same in all requests, so the prompt
 * prefix can be cached.
 */
export function applyAgent(request: GenerationRequest, agent: Agent | null): GenerationRequest {
  if (agent === null) return request
  // The original bytes no longer match the request.
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
 * Adds the agent's MCP servers and collections to the hosted tools. Without `approvals`, servers that
 * require approval are omitted.
 */
export function withAgentTools(
  request: HostedToolRequest,
  agent: Agent | null,
  { approvals = true }: { approvals?: boolean } = {},
): HostedToolRequest {
  if (agent === null) return request
  const taken = new Set(request.mcp.map(({ label }) => label))
  const isAdded = (tool: AgentServer) =>
    !taken.has(tool.label) && (approvals || tool.approval === 'never')
  const added = agent.tools.flatMap((tool, index) =>
    tool.type === 'mcp' && isAdded(tool) ? [serverRequest(tool, index)] : [],
  )
  return {
    ...request,
    mcp: [...added, ...request.mcp],
    fileSearch: withCollections(request.fileSearch, agent.collections),
  }
}

function joinTexts(first: string | null, second: string | null): string | null {
  const texts = [first, second].filter((text) => text !== null && text !== '')
  return texts.length === 0 ? null : texts.join('\n\n')
}

function functionsOf(agent: Agent, requestTools: readonly Tool[]): readonly FunctionTool[] {
  const taken = new Set(
    requestTools.flatMap((tool) => (tool.namespace === undefined ? [tool.name] : [])),
  )
  const isAdded = (tool: Agent['tools'][number]): tool is AgentFunction =>
    tool.type === 'function' && !taken.has(tool.name)
  return agent.tools.filter(isAdded)
}

function withDefaults(sampling: Sampling, defaults: AgentSampling): Sampling {
  return {
    ...sampling,
    temperature: sampling.temperature ?? defaults.temperature,
    topP: sampling.topP ?? defaults.topP,
    topK: sampling.topK ?? defaults.topK,
    presencePenalty: sampling.presencePenalty ?? defaults.presencePenalty,
    frequencyPenalty: sampling.frequencyPenalty ?? defaults.frequencyPenalty,
    maxOutputTokens: sampling.maxOutputTokens ?? defaults.maxOutputTokens,
  }
}

/** A reasoning budget in the request replaces the agent's effort. */
function effortOf(
  reasoning: GenerationRequest['reasoning'],
  { reasoningEffort }: AgentSampling,
): string | null {
  return reasoning.effort ?? (reasoning.budgetTokens === undefined ? reasoningEffort : null)
}

function serverRequest(tool: AgentServer, index: number): McpToolRequest {
  return {
    path: `agent.tools[${index}]`,
    urlPath: `agent.tools[${index}].server_url`,
    label: tool.label,
    url: null,
    description: null,
    authorization: null,
    headers: {},
    allowed: tool.allowed === null ? null : { names: tool.allowed, readOnly: null },
    approval: tool.approval,
  }
}
