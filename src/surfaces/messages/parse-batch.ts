import type { Config } from '#config/schema.ts'
import type { JsonObject } from '#lib/json.ts'
import { invalidField, readObject } from './read-object.ts'
import { batchRequest, newMessageBatch } from './schema/batches.ts'

type BatchRequest = { readonly custom_id: string; readonly params: JsonObject }

/** The requests of a new batch; what each asks for is read when it runs. */
export function readNewMessageBatch(
  body: unknown,
  { linesMax }: Pick<Config['batches'], 'linesMax'>,
): readonly BatchRequest[] {
  const { requests } = readObject(newMessageBatch, body, '')
  if (requests.length === 0) throw invalidField('requests', 'must not be empty')
  if (requests.length > linesMax) throw invalidField('requests', `may have ${linesMax} requests`)
  const ids = new Set<string>()
  return requests.map((request, index) => {
    const path = `requests.${index}`
    const { custom_id, params } = readObject(batchRequest, request, path)
    if (ids.has(custom_id)) {
      throw invalidField(`${path}.custom_id`, 'is used by an earlier request')
    }
    ids.add(custom_id)
    return { custom_id, params }
  })
}
