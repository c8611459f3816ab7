import { describe, expect, test } from 'bun:test'
import { type SQL, sql } from 'drizzle-orm'
import { createListingStore } from '#files/listing/store.ts'
import { duplicateKey } from '#files/names.ts'
import { type Person, principalOf } from '#test/support/file-gateway.ts'
import { ann, bob, fresh, useFileGateway } from './fixture.ts'

const fixture = useFileGateway()
const childrenMax = 10_000

type Item = { id: string; name: string; object: string }
type List = { data: Item[]; has_more: boolean; next: string | null }

async function list(path: string, json?: object, who: Person = ann): Promise<List> {
  const { status, body } = await fixture.gateway.send(who, path, json === undefined ? {} : { json })
  expect(status).toBe(200)
  return Object(body)
}

const namesOf = ({ data }: List) => data.map(({ name }) => name)

async function all(path: string, json: object): Promise<Item[]> {
  const items: Item[] = []
  let cursor: string | null = null
  do {
    const page: List = await list(path, { ...json, cursor })
    items.push(...page.data)
    cursor = page.next
  } while (cursor !== null)
  return items
}

describe('the children of a folder', () => {
  test('have stable pages while nodes are added and deleted', async () => {
    const { gateway } = fixture
    const folder_id = await gateway.folder(ann, fresh('pages'))
    const ids = new Map<string, string>()
    for (const name of ['b', 'd', 'f', 'h', 'j', 'l']) {
      ids.set(name, await gateway.upload(ann, name, { folderId: folder_id }))
    }
    const next = async (cursor: string | null) =>
      list('/v1/files/children', { folder_id, limit: 2, cursor })
    const first = await next(null)
    await gateway.upload(ann, 'a', { folderId: folder_id })
    await gateway.upload(ann, 'g', { folderId: folder_id })
    await gateway.send(ann, `/v1/files/${ids.get('d')}`, { method: 'DELETE' })
    const second = await next(first.next)
    await gateway.send(ann, `/v1/files/${ids.get('b')}`, { method: 'PATCH', json: { name: 'c' } })
    const third = await next(second.next)
    const last = await next(third.next)
    expect([first, second, third, last].flatMap(namesOf)).toEqual([
      ...['b', 'd', 'f', 'g', 'h', 'j', 'l'],
    ])
    expect([last.has_more, last.next]).toEqual([false, null])
  })

  test('are sorted, folders first', async () => {
    const { gateway } = fixture
    const folder_id = await gateway.folder(ann, fresh('sorts'))
    for (const [name, bytes] of [
      ['m', 3],
      ['Z', 1],
      ['a', 2],
    ] as const) {
      await gateway.upload(ann, name, { folderId: folder_id, text: name.repeat(bytes) })
    }
    for (const name of ['y', 'B']) await gateway.folder(ann, name, folder_id)
    const sorted = async (sort: string, order: string) =>
      (await all('/v1/files/children', { folder_id, sort, order, limit: 2 }))
        .map(({ name }) => name)
        .join('')
    expect(await sorted('name', 'asc')).toBe('ByamZ')
    expect(await sorted('name', 'desc')).toBe('yBZma')
    expect(await sorted('created_at', 'asc')).toBe('yBmZa')
    expect(await sorted('updated_at', 'desc')).toBe('ByaZm')
    expect(await sorted('bytes', 'asc')).toBe('yBZam')
    expect(await sorted('bytes', 'desc')).toBe('BymaZ')
    for (const [type, names] of [
      ['file', 'amZ'],
      ['folder', 'By'],
    ] as const) {
      expect(namesOf(await list('/v1/files/children', { folder_id, type })).join('')).toBe(names)
    }
  })

  test('are the same with GET and POST', async () => {
    const { gateway } = fixture
    const folder_id = await gateway.folder(ann, fresh('both'))
    await gateway.upload(ann, 'a', { folderId: folder_id })
    const query = `folder_id=${folder_id}&scope=mine&type=all&sort=bytes&order=desc&limit=5`
    const params = { folder_id, scope: 'mine', type: 'all', sort: 'bytes', order: 'desc', limit: 5 }
    const responses = [
      await list(`/v1/files/children?${query}`),
      await list('/v1/files/children', params),
    ]
    expect(responses[0]).toEqual(Object(responses[1]))
    expect(responses[0]).toMatchObject({ object: 'list', folder: { id: folder_id }, data: [{}] })
  })

  test('a page of ten thousand children reads only that page', async () => {
    const { gateway, database } = { gateway: fixture.gateway, database: fixture.database.drizzle }
    const folder_id = await gateway.folder(bob, fresh('large'))
    const { userId } = principalOf(bob)
    await database.execute(sql`
      insert into node (id, kind, parent_id, owner_id, created_by, name, name_key, created_at,
        updated_at)
      select gen_random_uuid(), case when n % 10 = 0 then 'folder' else 'file' end,
        ${folder_id}::uuid, ${userId}::uuid, ${userId}::uuid, lpad(n::text, 5, '0'),
        lpad(n::text, 5, '0'), now(), now()
      from generate_series(1, ${childrenMax}::integer) n`)
    await database.execute(sql`analyze node`)
    const page = await list('/v1/files/children', { folder_id, limit: 100 }, bob)
    expect(namesOf(page)).toEqual(
      Array.from({ length: 100 }, (_, at) => String((at + 1) * 10).padStart(5, '0')),
    )
    let cursor: string | null = null
    const visible = new Set<string>()
    do {
      const next: List = await list('/v1/files/children', { folder_id, limit: 100, cursor }, bob)
      for (const { id } of next.data) visible.add(id)
      cursor = next.next
    } while (cursor !== null)
    expect(visible.size).toBe(childrenMax)
    expect(await planOf(folder_id)).not.toMatch(/Seq Scan on node/)
    expect(await planOf(folder_id)).toMatch(/Index Scan using node_parent on node/)
  })
})

/** The query plan of the page after the hundredth file of a folder. */
async function planOf(folderId: string): Promise<string> {
  const { drizzle } = fixture.database
  const plans: string[] = []
  const explaining = {
    async execute(query: SQL) {
      const rows = await drizzle.execute<Record<string, string>>(sql`explain ${query}`)
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'))
      return drizzle.execute(query)
    },
  }
  const store = createListingStore({ drizzle: Object(explaining) })
  const page = { sort: 'name', order: 'asc', type: 'all', limit: 100, scope: 'all' } as const
  const behind = { kind: 'file', sortKey: '00100', id: folderId } as const
  await store.children(principalOf(bob), { ...page, folder_id: folderId, cursor: null }, behind)
  return plans.join('\n')
}

describe('the list of files', () => {
  test('pages in both directions and filters by purpose', async () => {
    const { gateway } = fixture
    const cat: Person = { subject: 'cat', groups: ['users'] }
    const ids: string[] = []
    for (let file = 0; file < 5; file++) {
      const purpose = file % 2 === 0 ? 'batch' : 'user_data'
      ids.push(await gateway.upload(cat, fresh('f'), { purpose }))
    }
    const ask = async (query: string) => list(`/v1/files?${query}`, undefined, cat)
    const places = ({ data }: List) => data.map(({ id }) => ids.indexOf(id)).join('')
    expect(places(await ask('limit=10000'))).toBe('43210')
    expect(places(await ask('order=asc'))).toBe('01234')
    expect(places(await ask('purpose=batch'))).toBe('420')
    expect(places(await ask(`after=${ids[3]}&limit=2`))).toBe('21')
    expect(places(await ask(`before=${ids[1]}&limit=2`))).toBe('32')
    expect(places(await ask(`before=${ids[3]}&order=asc&limit=2`))).toBe('12')
    const page = await ask('limit=2')
    expect(page).toMatchObject({ first_id: ids[4], last_id: ids[3], next: ids[3], has_more: true })
    expect(await ask(`after=${ids[0]}`)).toMatchObject({ data: [], has_more: false, next: null })
  })
})

describe('a search', () => {
  test('finds every term anywhere in a name, in any case and composition', async () => {
    const { gateway } = fixture
    const folderId = await gateway.folder(ann, fresh('search'))
    const names = [
      'R\u00e9sum\u00e9 of Zo\u00eb (final).pdf',
      '100%_sure.txt',
      'a_b',
      'axb',
      'back\u00b7slash',
    ]
    for (const name of names) await gateway.upload(ann, name, { folderId })
    const find = async (query: string) =>
      namesOf(await list('/v1/files/search', { query, folder_id: folderId }))
    expect(await find('RESUME\u0301')).toEqual([])
    expect(await find('RE\u0301SUME\u0301')).toEqual(names.slice(0, 1))
    expect(await find('zo\u00cb FINAL r\u00e9')).toEqual(names.slice(0, 1))
    expect(await find('zo\u00eb missing')).toEqual([])
    expect(await find('%')).toEqual(['100%_sure.txt'])
    expect(await find('_')).toEqual(['100%_sure.txt', 'a_b'])
    expect(await find('\\')).toEqual([])
    expect(await find(fresh('search'))).toEqual([])
  })

  test('of files with one name finds all of them, and none by the ids that tell them apart', async () => {
    const { gateway } = fixture
    const name = fresh('twin')
    await gateway.upload(ann, name)
    const id = await gateway.upload(ann, fresh('twin'))
    // As an upload with a purpose stores it.
    await fixture.database.drizzle.execute(sql`
      update node set name = ${name}, name_key = ${duplicateKey(name, id)} where id = ${id}::uuid`)
    const find = async (query: string) => namesOf(await list('/v1/files/search', { query }))
    expect(await find(name)).toEqual([name, name])
    expect(await find(id.slice(-12))).toEqual([])
  })

  test('highlights the terms in the name', async () => {
    const { gateway } = fixture
    const name = '\u{1f600} Ba\u200bNana ban.TXT'
    const folder_id = await gateway.folder(ann, fresh('marks'))
    await gateway.upload(ann, name, { folderId: folder_id })
    const { data } = await list('/v1/files/search', { query: 'AN txt', folder_id })
    const { match } = Object(data[0])
    const marked = match.highlight.map(({ start, end }: { start: number; end: number }) =>
      name.slice(start, end),
    )
    expect([match.name, marked]).toEqual([name, ['a\u200bNan', 'an', 'TXT']])
  })

  test('can be limited to a MIME type', async () => {
    const { gateway } = fixture
    const folder_id = await gateway.folder(ann, fresh('kinds'))
    const kinds = { 'x.png': 'image/png', 'x.gif': 'image/gif', 'x.txt': 'text/plain' }
    for (const [name, mimeType] of Object.entries(kinds)) {
      await gateway.upload(ann, name, { folderId: folder_id, mimeType })
    }
    await gateway.folder(ann, 'x', folder_id)
    const find = async (mime_type?: string) =>
      namesOf(await list('/v1/files/search', { q: 'x', folder_id, mime_type: mime_type ?? null }))
    expect(await find()).toEqual(['x', 'x.gif', 'x.png', 'x.txt'])
    expect(await find('image/*')).toEqual(['x.gif', 'x.png'])
    expect(await find('image/png')).toEqual(['x.png'])
    expect(await find('image/%')).toEqual([])
  })
})
