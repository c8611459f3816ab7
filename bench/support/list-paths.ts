import { dayMs } from '#usage/grouping.ts'
import { userOf } from './usage-fill.ts'

type Read = (path: string) => Promise<Readonly<Record<string, unknown>>>

/** What the console asks for: the first page of each list, one further on, and its filters. */
export async function listPaths(read: Read): Promise<readonly (readonly [string, string])[]> {
  const day = new Date(Date.now() - dayMs).toISOString()
  const month = new Date(Date.now() - 29 * dayMs).toISOString()
  const person = userOf(7)
  const folder = await firstFolder(read)
  const lists: readonly (readonly [string, string])[] = [
    ['users', '/v1/users?limit=50'],
    ['API keys of everybody', '/v1/api-keys?user_id=all&limit=50'],
    ['API keys of one user', '/v1/api-keys?limit=50'],
    ['audit log', '/v1/audit-log?limit=50'],
    ['agents', '/v1/agents?limit=50'],
    ['files', '/v1/files?limit=100'],
    ['files of the root folder', '/v1/files/children?limit=100'],
    ['files of a folder', `/v1/files/children?folder_id=${folder}&limit=100`],
    ['usage records', `/v1/usage/records?from=${month}&limit=50`],
    ['usage records of one user', `/v1/usage/records?from=${month}&user=${person}&limit=50`],
  ]
  const next = await Promise.all(
    lists.map(async ([name, path]) => {
      const { last_id: last, next: cursor } = await read(path)
      const position = last === undefined ? `cursor=${cursor}` : `after=${last}`
      return [`${name}, next page`, `${path}&${position}`] as const
    }),
  )
  return [
    ...lists.flatMap((list, index) => [list, next[index] ?? list]),
    ['users by name', '/v1/users?q=person%209876&limit=50'],
    ['groups', '/v1/groups'],
    ['members of a group', '/v1/groups/users/members?limit=50'],
    ['principals by name', '/v1/principals?q=person%209876'],
    ['audit log of one user', `/v1/audit-log?actor=${person}&limit=50`],
    ['audit log by action', '/v1/audit-log?action=config.update&limit=50'],
    ['audit log by a rare action', '/v1/audit-log?action=webhook.delete&limit=50'],
    ['audit log of a resource', '/v1/audit-log?resource=group:resource-41&limit=50'],
    ['files by name', '/v1/files/search?query=report%2099876&limit=50'],
    ['files by a common name', '/v1/files/search?query=report&limit=50'],
    ['trash', '/v1/files/trash?limit=50'],
    ['collections', '/v1/collections?limit=50'],
    ['models', '/v1/models'],
    ['downloads', '/v1/model-installer/downloads'],
    ['usage by day', `/v1/usage?group_by=day&from=${month}`],
    ['usage by model', `/v1/usage?group_by=model&from=${month}`],
    ['usage by user', `/v1/usage?group_by=user&from=${month}`],
    ['usage by key', `/v1/usage?group_by=key&from=${month}`],
    ['usage by hour, last day', `/v1/usage?group_by=hour&from=${day}`],
  ]
}

async function firstFolder(read: Read): Promise<string> {
  const { data } = await read('/v1/files/children?limit=1')
  const [first] = data as { id: string }[]
  return first?.id ?? ''
}
