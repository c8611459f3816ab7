import { emptyDefinition } from '#agents/definition.ts'
import type { Database } from '#db/client.ts'
import { dayMs } from '#usage/grouping.ts'
import { fillSums, userOf } from './usage-fill.ts'

export type ListSizes = {
  readonly records: number
  readonly files: number
  readonly keys: number
  readonly audits: number
  readonly users: number
  readonly agents: number
}

/** Files directly in the root folder; the others are in folders of a thousand. */
const rootFilesShare = 0.5
const folderFiles = 1_000
const groups = 50
const days = 30

const startedAtMs = Date.now()

/** A UUIDv7 in SQL: the n-th of a series that ends now, `everyMs` apart. */
const idAt = (n: string, everyMs: number) =>
  `(lpad(to_hex((${startedAtMs} - (${n})::numeric * ${everyMs})::bigint), 12, '0')
    || '70008000' || lpad(to_hex(${n}), 12, '0'))::uuid`

/**
 * Fills the tables behind the lists of the console. The files, and half of the keys, are those of `owner`.
 */
export async function fillLists(
  database: Pick<Database, 'drizzle' | 'kind'>,
  sizes: ListSizes,
  owner: string,
): Promise<void> {
  const { drizzle } = database
  const { users, keys, audits, agents } = sizes
  const user = (n: string) =>
    `('00000000-0000-8000-8000-' || lpad(to_hex((${n}) % ${users}), 12, '0'))::uuid`
  await drizzle.execute(`
    insert into app_user (id, subject, name, last_seen_at)
    select ${user('n')}, 'person-' || n, 'Person ' || n, now() - make_interval(mins => n)
    from generate_series(0, ${users - 1}) as n
    union all select '${owner}', 'owner of the files', null, now()`)
  await drizzle.execute(`
    insert into app_group (name, permissions)
    select 'team-' || n, array['can_access_api'] from generate_series(0, ${groups - 1}) as n`)
  await drizzle.execute(`
    insert into group_member (user_id, group_name, source)
    select ${user('n')}, 'team-' || n % ${groups}, 'idp' from generate_series(0, ${users - 1}) as n
    union all select ${user('n')}, 'users', 'idp' from generate_series(0, ${users - 1}) as n`)
  await drizzle.execute(`
    insert into api_key (id, user_id, name, hash, masked, created_at)
    select ${idAt('n', 60_000)}, case when n % 2 = 0 then '${owner}'::uuid else ${user('n')} end,
      'key ' || n, decode(md5(n::text) || md5('key' || n), 'hex'), 'sk-svc-v1-…', now()
    from generate_series(0, ${keys - 1}) as n`)
  await drizzle.execute(`
    insert into audit_entry (id, at, actor_id, action, resource_type, resource_id, changes)
    select ${idAt('n', 2_000)}, now() - n * interval '2 seconds', ${user('n')},
      (array['api_key.create', 'group.update', 'config.update', 'file.share'])[1 + n % 4],
      (array['api_key', 'group', 'config', 'file'])[1 + n % 4], 'resource-' || n % 5000, '{}'
    from generate_series(0, ${audits - 1}) as n`)
  const definition = { ...emptyDefinition, model: 'm', visibility: { kind: 'everyone' } }
  await drizzle.execute(`
    insert into agent (id, owner_id, definition, visibility, groups, user_ids, created_at, updated_at)
    select ${idAt('n', 60_000)}, ${user('n')},
      ('${JSON.stringify(definition)}'::jsonb || jsonb_build_object('name', 'Agent ' || n))::text,
      'everyone', '{}', '{}', now(), now()
    from generate_series(0, ${agents - 1}) as n`)
  await fillFiles(database, sizes.files, owner)
  await fillUsage(database, sizes)
  await drizzle.execute(database.kind === 'postgres' ? 'vacuum analyze' : 'vacuum')
}

async function fillFiles(
  { drizzle }: Pick<Database, 'drizzle'>,
  files: number,
  owner: string,
): Promise<void> {
  const inRoot = Math.round(files * rootFilesShare)
  const folders = Math.ceil((files - inRoot) / folderFiles)
  const columns =
    'id, kind, parent_id, owner_id, created_by, name, name_key, created_at, updated_at'
  const own = `'${owner}'::uuid, '${owner}'::uuid`
  await drizzle.execute(`
    insert into node (${columns})
    select ${idAt(`n + ${files}`, 100)}, 'folder', null, ${own}, 'folder ' || n, 'folder ' || n, now(), now()
    from generate_series(0, ${folders - 1}) as n`)
  await drizzle.execute(`
    insert into node (${columns})
    select ${idAt('n', 100)}, 'file',
      case when n < ${inRoot} then null else ${idAt(`(n - ${inRoot}) / ${folderFiles} + ${files}`, 100)} end,
      ${own}, 'report ' || n || '.pdf', 'report ' || n || '.pdf', now(), now()
    from generate_series(0, ${files - 1}) as n`)
  await drizzle.execute(
    `insert into blob (sha256, bytes, put_at) values (repeat('0', 64), 1, now())`,
  )
  await drizzle.execute(`
    insert into file (node_id, bytes, mime_type, sha256, attributes, purpose)
    select id, 1, 'application/pdf', repeat('0', 64), '{}', 'assistants' from node where kind = 'file'`)
}

async function fillUsage(
  database: Pick<Database, 'drizzle' | 'kind'>,
  { records, users }: ListSizes,
): Promise<void> {
  const from = new Date(Date.now() - days * dayMs)
  const active = Math.min(users, 200)
  await fillSums(database, { records, users: active, from, hours: days * 24 })
  await database.drizzle.execute(`
    insert into usage_record (id, batch_id, ended_at, kind, user_id, key_id, model, upstream, outcome,
      request_id, input_tokens, output_tokens, duration_ms)
    select ${idAt('n', (days * dayMs) / records)}, '${userOf(0)}', now(), 'generation', id, id,
      'model-' || n % 6, 'upstream-0', 'completed', 'req_' || n, 1500, 300, 2500
    from generate_series(0, ${records - 1}) as n,
      lateral (select ('00000000-0000-8000-8000-' || lpad(to_hex(n % ${active}), 12, '0'))::uuid as id) as ids`)
}
