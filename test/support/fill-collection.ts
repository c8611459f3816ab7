import OpenAI, { toFile } from 'openai'
import type { Gateway } from './gateway.ts'

/** A subject of the gateway's tokens. */
export type Person = { readonly subject: string; readonly groups: readonly string[] }

/** The default caller of a gateway. */
export const ann: Person = { subject: 'tester', groups: ['users'] }
export const bob: Person = { subject: 'bob', groups: ['users'] }

const pollIntervalMs = 20

export async function clientOf(
  gateway: Gateway,
  { subject, groups }: Person,
  options: ConstructorParameters<typeof OpenAI>[0] = {},
): Promise<OpenAI> {
  const apiKey = await gateway.token(groups, subject)
  return new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0, ...options })
}

/**
 * Creates a collection with short files of one passage each, and waits until it can be searched.
 * Returns its id and the ids of the files by name.
 */
export async function fillCollection(
  gateway: Gateway,
  who: Person,
  { name, files }: { name: string; files: Readonly<Record<string, string | Uint8Array>> },
): Promise<{ id: string; fileIds: Readonly<Record<string, string>> }> {
  const { vectorStores } = await clientOf(gateway, who)
  const { id } = await vectorStores.create({ name })
  const fileIds: Record<string, string> = {}
  for (const [filename, content] of Object.entries(files)) {
    const file = await toFile(Buffer.from(content), filename)
    const added = await vectorStores.files.uploadAndPoll(id, file, { pollIntervalMs })
    if (added.status !== 'completed') throw new Error(`${filename}: ${added.last_error?.message}`)
    fileIds[filename] = added.id
  }
  return { id, fileIds }
}

/** Shares with everyone as viewers. */
export async function shareWithAll(gateway: Gateway, who: Person, path: string): Promise<void> {
  const client = await clientOf(gateway, who)
  const body = { principal: { type: 'everyone' }, role: 'viewer' }
  await client.post(`${path}/shares`, { body })
}
