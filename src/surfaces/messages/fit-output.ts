import type { GenerationRequest } from '#inference/request.ts'

/** The count of the input may be too low by so much, and templates add some tokens of their own. */
const countErrorMax = 0.2
const templateTokens = 64
/** With less room than this an answer would only break off; the upstream says that it is full. */
const roomTokensMin = 1_024

/**
 * The request with no more output than its model has room for behind the input. Clients ask for the
 * same high limit of every model, and servers refuse what could grow out of the window.
 */
export function fitOutput(
  request: GenerationRequest,
  { contextWindow, inputTokens }: { contextWindow: number | null; inputTokens: number },
): GenerationRequest {
  const { maxOutputTokens } = request.sampling
  if (contextWindow === null || maxOutputTokens === null) return request
  const inputTokensMax = Math.ceil(inputTokens * (1 + countErrorMax)) + templateTokens
  const room = contextWindow - inputTokensMax
  if (room >= maxOutputTokens || room < roomTokensMin) return request
  return { ...request, sampling: { ...request.sampling, maxOutputTokens: room } }
}
