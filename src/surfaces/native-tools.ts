import { quote } from '#api/read-object.ts'
import type { Config } from '#config/schema.ts'
import { hasWebSearch } from '#hosted-tools/hosted-tools.ts'
import { isWebSearchType } from '#hosted-tools/web-search/request.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { Target } from '#inference/upstream.ts'
import { AppError } from '#lib/errors.ts'

/** What a request needs of an upstream that speaks the protocol of its client. */
export type NativeNeeds = {
  readonly protocol: 'responses' | 'messages'
  /** The native tools of the request, each with its path in the body. */
  readonly tools: readonly { readonly type: string; readonly path: string }[]
  /** Parts of the request that no upstream of another protocol can get. */
  readonly refusals: readonly AppError[]
  /** Whether the upstream gets the body of the request itself. */
  readonly isRelayed: boolean
}

type NativePlan = {
  readonly request: GenerationRequest
  readonly targets: readonly Target[]
  /** The types of tools that the model does not get. */
  readonly droppedTools: readonly string[]
}

/**
 * The targets that can serve a request, and the request without the tools that they cannot get. Throws
 * `tool_not_supported` or the first refusal if no target can.
 */
export function planNative(
  request: GenerationRequest,
  {
    needs,
    targets,
    config,
  }: {
    needs: NativeNeeds
    targets: readonly Target[]
    config: Pick<Config, 'upstream' | 'unsupportedTools'>
  },
): NativePlan {
  const { tools, refusals } = needs
  if (tools.length + refusals.length === 0) return { request, targets, droppedTools: [] }
  const native = targets.filter(({ upstream }) => upstream.kind === needs.protocol)
  const [refusal] = refusals
  if (native.length > 0 && (refusal === undefined || needs.isRelayed)) {
    return { request, targets: native, droppedTools: [] }
  }
  const [tool] = tools
  if (tool !== undefined && native.length === 0 && config.unsupportedTools === 'refuse') {
    throw unsupportedTool(tool, { needs, model: request.model, config })
  }
  if (refusal !== undefined) throw refusal
  const { native: _, ...rest } = request
  return { request: rest, targets, droppedTools: [...new Set(tools.map(({ type }) => type))] }
}

export type WebSearchConfig = Pick<Config, 'webSearch' | 'mcpServer'>

/**
 * Whether the gateway runs the web search of a request: an operator has configured one, and no upstream
 * of the model speaks the protocol of the client.
 */
export function searchesHere(
  { tools, protocol }: NativeNeeds,
  targets: readonly Target[],
  config: WebSearchConfig,
  groups: readonly string[],
): boolean {
  return (
    tools.some(({ type }) => isWebSearchType(type)) &&
    targets.every(({ upstream }) => upstream.kind !== protocol) &&
    hasWebSearch(config, groups)
  )
}

function unsupportedTool(
  { type, path }: NativeNeeds['tools'][number],
  given: {
    needs: NativeNeeds
    model: string
    config: Pick<Config, 'upstream'>
  },
): AppError {
  const { needs, model, config } = given
  const names = config.upstream
    .filter(({ api }) => api === needs.protocol)
    .map(({ name }) => quote(name))
  const where =
    names.length === 0
      ? 'no configured upstream has it'
      : `these upstreams have it: ${names.join(', ')}`
  return new AppError(
    'tool_not_supported',
    `${path}: the tool ${quote(type)} is not supported with the model ${quote(model)}; ${where}.`,
    { param: path },
  )
}
