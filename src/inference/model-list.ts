import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import type { UpstreamContext, UpstreamModel } from './upstream.ts'
import { readText, requestHeaders, requireSuccess } from './upstream-http.ts'

/** The longest model list that is read; a list of 10,000 models has about 3 MB. */
export const listBytesMax = 8_388_608

/**
 * The models that an upstream offers: GET /models, which every OpenAI-compatible server has. Some
 * tell more than OpenAI's four fields; the context window is under the name that each gave it.
 */
export async function fetchModelList(context: UpstreamContext): Promise<readonly UpstreamModel[]> {
  const { upstream, transport, signal } = context
  const answer = await transport.send({
    upstream: upstream.name,
    url: `${upstream.baseUrl}/models`,
    method: 'GET',
    headers: requestHeaders(upstream, 'application/json'),
    signal,
  })
  await requireSuccess(answer, upstream)
  return readModelList(await readText(answer, listBytesMax))
}

/** The entries of a model list, in OpenAI's shape or in that of the Messages protocol. */
export function readModelList(body: string): UpstreamModel[] {
  const answer = parseJson(body)
  const entries = isRecord(answer) ? answer['data'] : answer
  if (!Array.isArray(entries)) {
    throw new AppError('upstream_invalid_answer', 'The upstream gave no list of its models.', {
      cause: { body: body.slice(0, 500) },
    })
  }
  const models = new Map<string, UpstreamModel>()
  for (const entry of entries) {
    const id = isRecord(entry) ? entry['id'] : undefined
    if (!isRecord(entry) || typeof id !== 'string' || id === '') continue
    models.set(id, {
      id,
      created: positive(entry['created']) ?? readDate(entry['created_at']),
      ownedBy: typeof entry['owned_by'] === 'string' ? entry['owned_by'] : null,
      contextWindow: contextWindow(entry),
    })
  }
  return [...models.values()]
}

/**
 * vLLM and SGLang: max_model_len; OpenRouter and others: context_length; the Messages protocol:
 * max_input_tokens; llama.cpp: in meta.
 */
function contextWindow(entry: JsonObject): number | null {
  const meta = isRecord(entry['meta']) ? entry['meta'] : {}
  return (
    positive(entry['max_model_len']) ??
    positive(entry['context_length']) ??
    positive(entry['max_input_tokens']) ??
    positive(meta['n_ctx_train'])
  )
}

/** The Unix seconds of an RFC 3339 date; its first second of all stands for an unknown date. */
function readDate(value: unknown): number | null {
  const milliseconds = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return positive(Math.floor(milliseconds / 1000))
}

function positive(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : null
}
