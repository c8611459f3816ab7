import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Collections } from '#retrieval/collections/create-collections.ts'
import { toModelError } from '#retrieval/vector-stores/model-errors.ts'

/**
 * Replaces names of collections in `file_search` tools by ids, so that a queued or stored request keeps
 * its collections whatever is created under these names later. Unknown names stay: their search fails.
 * Undefined if the body names none. Throws `invalid_request` for an ambiguous name.
 */
export function withCollectionIds(
  body: unknown,
  principal: RequestPrincipal,
  { resolve }: Pick<Collections, 'resolve'>,
): Promise<unknown> | undefined {
  const { tools } = asRecord(body)
  if (!Array.isArray(tools)) return undefined
  const named = tools.flatMap((tool, index) => namesIn(tool, index))
  if (named.length === 0 || named.length > namesMax) return undefined
  const references = named.map(({ name }) => name)
  return resolve(principal, references, (at) => named[at]?.path ?? '').then(
    (found) => {
      const ids = new Map(references.map((name, at) => [name, found[at]?.id ?? name]))
      return { ...asRecord(body), tools: tools.map((tool) => withIds(tool, ids)) }
    },
    (error: unknown) => {
      throw toModelError(error)
    },
  )
}

/** More are refused by the schema of the request. */
const namesMax = 32
const nameCharsMax = 256

function namesIn(tool: unknown, index: number): { name: string; path: string }[] {
  if (!isFileSearch(tool)) return []
  return tool.vector_store_ids.flatMap((name, at) =>
    typeof name === 'string' && name.length <= nameCharsMax && !isUuid(name)
      ? [{ name, path: `tools[${index}].vector_store_ids[${at}]` }]
      : [],
  )
}

function withIds(tool: unknown, ids: ReadonlyMap<unknown, string>): unknown {
  if (!isFileSearch(tool)) return tool
  return { ...tool, vector_store_ids: tool.vector_store_ids.map((name) => ids.get(name) ?? name) }
}

type FileSearchInput = JsonObject & { readonly vector_store_ids: readonly unknown[] }

function isFileSearch(tool: unknown): tool is FileSearchInput {
  return isRecord(tool) && tool['type'] === 'file_search' && Array.isArray(tool['vector_store_ids'])
}
