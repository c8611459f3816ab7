import type { ResponseObject, StoredItem } from '#responses/response.ts'

const sealedReasoning = 'reasoning.encrypted_content'

/** A stored response as its caller gets to see it. */
export function showResponse(response: ResponseObject, include: readonly string[]): ResponseObject {
  return { ...response, output: response.output.map((item) => showItem(item, include)) }
}

/** Reasoning is shown in the open or, where that is asked for, sealed; as it was streamed. */
export function showItem(item: StoredItem, include: readonly string[]): StoredItem {
  const { id, type } = item
  if (type !== 'reasoning' || item['encrypted_content'] === undefined) return item
  const { content, encrypted_content, ...rest } = item
  const asked = include.includes(sealedReasoning)
  const form = asked ? { encrypted_content } : content === undefined ? {} : { content }
  return { ...rest, ...form, id, type }
}
