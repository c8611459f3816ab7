import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import type { UpstreamContext, UpstreamModel } from './upstream.ts'
import { readText, requestHeaders, requireSuccess } from './upstream-http.ts'

/** A list of 10,000 models has about 3 MB. */
export const listBytesMax = 8_388_608

/**
 * GET /models, which every OpenAI-compatible server has. Some servers have more than OpenAI's four
 * fields, with different names for the context window.
 */
export async function fetchModelList(context: UpstreamContext): Promise<readonly UpstreamModel[]> {
  const { upstream, transport, signal } = context
  const response = await transport.send({
    upstream: upstream.name,
    url: `${upstream.baseUrl}/models`,
    method: 'GET',
    headers: requestHeaders(upstream, 'application/json'),
    signal,
  })
  await requireSuccess(response, upstream)
  return readModelList(await readText(response, listBytesMax))
}

/** Reads a model list in the format of OpenAI or of the Messages protocol. */
export function readModelList(body: string): UpstreamModel[] {
  const parsed = parseJson(body)
  const entries = isRecord(parsed) ? parsed['data'] : parsed
  if (!Array.isArray(entries)) {
    throw new AppError('upstream_invalid_answer', 'The upstream returned no model list.', {
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

/** An RFC 3339 date as Unix seconds; null for the epoch, which means unknown. */
function readDate(value: unknown): number | null {
  const milliseconds = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return positive(Math.floor(milliseconds / 1000))
}

function positive(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : null
}
