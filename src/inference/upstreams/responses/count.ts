import { askCounter, readCount } from '#inference/ask-counter.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { AdapterContext } from '#inference/upstream.ts'
import { encodeRequest } from './encode.ts'

/** The fields of a request that its counter takes; others would be refused. */
const countedFields = [
  ...['model', 'instructions', 'input', 'tools', 'tool_choice', 'parallel_tool_calls'],
  ...['text', 'reasoning'],
] as const

/** Asks POST /responses/input_tokens, which counts what POST /responses would read. */
export async function countTokens(
  request: GenerationRequest,
  context: AdapterContext,
): Promise<number | null> {
  const { upstream, model } = context
  const maker = `${upstream.name}/${model}`
  const encoded = encodeRequest(request, { model, maker, quirks: upstream.quirks })
  const body = Object.fromEntries(countedFields.map((name) => [name, encoded[name]]))
  const answer = await askCounter(context, {
    url: `${upstream.baseUrl}/responses/input_tokens`,
    body,
  })
  return answer === null ? null : readCount(answer['input_tokens'])
}
