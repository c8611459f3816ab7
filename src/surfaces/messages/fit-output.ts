import type { GenerationRequest } from '#inference/request.ts'

/** Allowance for an input count that is too low, and for the tokens of the chat template. */
const countErrorMax = 0.2
const templateTokens = 64
/** With less space than this, the upstream reports a full context window. */
const outputTokensMin = 1_024

/**
 * Limits the output to the space that the input leaves in the context window. Clients request the same
 * high limit from every model, and servers refuse a request that could exceed the window.
 */
export function fitOutput(
  request: GenerationRequest,
  { contextWindow, inputTokens }: { contextWindow: number | null; inputTokens: number },
): GenerationRequest {
  const { maxOutputTokens } = request.sampling
  if (contextWindow === null || maxOutputTokens === null) return request
  const inputTokensMax = Math.ceil(inputTokens * (1 + countErrorMax)) + templateTokens
  const spaceTokens = contextWindow - inputTokensMax
  if (spaceTokens >= maxOutputTokens || spaceTokens < outputTokensMin) return request
  return { ...request, sampling: { ...request.sampling, maxOutputTokens: spaceTokens } }
}
