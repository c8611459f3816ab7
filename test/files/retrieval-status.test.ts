import { describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { type Person, principalOf } from '#test/support/file-gateway.ts'
import { storeCollection } from '#test/support/stored-collections.ts'
import { ann, bob, fresh, useFileGateway } from './fixture.ts'

const fixture = useFileGateway()

type State = {
  state: string
  stage?: string
  chunks?: number
  error?: [string, string]
  warnings?: readonly object[]
}

/** Adds the file to a new collection, in the given state. */
async function collect(fileId: string, owner: Person, state: State | null): Promise<string> {
  const { drizzle } = fixture.database
  const name = fresh('collection')
  const { userId } = principalOf(owner)
  const [index] = await drizzle.execute<{ id: number }>(sql`
    insert into embedding_index (model, dims, chunk_tokens_max, chunk_overlap_tokens, state,
      created_at) values ('m', 3, 800, 0, 'active', now()) returning id`)
  const indexId = index?.id ?? 0
  const id = Bun.randomUUIDv7()
  await storeCollection(fixture.database, { id, name, ownerId: userId, indexId, fileIds: [fileId] })
  if (state === null) return name
  const [code, message] = state.error ?? [null, null]
  await drizzle.execute(sql`
    insert into file_index (file_id, index_id, state, stage, chunks, error_code, error_message,
      warnings, updated_at)
    values (${fileId}, ${indexId}::integer, ${state.state}, ${state.stage ?? 'waiting'},
      ${state.chunks ?? 0}::integer, ${code}, ${message},
      ${state.warnings ? JSON.stringify(state.warnings) : null}::text, now())`)
  return name
}

async function show(id: string, who = ann): Promise<Record<string, unknown>> {
  return (await fixture.gateway.send(who, `/v1/files/${id}`)).body
}

const noPages = { code: 'pages_without_text', message: '2 pages have no text (1, 2).' }

describe('the status of a file', () => {
  const cases: [string, string, State | null, object][] = [
    [
      'RAG Available',
      'processed',
      { state: 'done', chunks: 7, warnings: [noPages] },
      { state: 'completed', chunks: 7, error: null, warnings: [noPages] },
    ],
    ['Pending', 'processing', null, { state: 'waiting', chunks: 0, error: null, warnings: [] }],
    ['Pending', 'processing', { state: 'pending' }, { state: 'waiting' }],
    ['Processing', 'processing', { state: 'pending', stage: 'parsing' }, { state: 'parsing' }],
    [
      'Failed',
      'error',
      { state: 'failed', error: ['encrypted', 'It is encrypted.'] },
      { state: 'error', error: { code: 'encrypted', message: 'It is encrypted.' } },
    ],
    [
      'Not Supported',
      'processed',
      { state: 'skipped', error: ['no_text', 'It has no text.'], warnings: [noPages] },
      {
        state: 'skipped',
        error: { code: 'no_text', message: 'It has no text.' },
        warnings: [noPages],
      },
    ],
  ]
  test.each(cases)(
    'is %s, or %s for OpenAI clients',
    async (status, openAiStatus, state, shown) => {
      const id = await fixture.gateway.upload(ann, fresh('file'))
      const name = await collect(id, ann, state)
      expect(await show(id)).toMatchObject({
        retrieval_status: status,
        status: openAiStatus,
        retrieval: { ...shown, collections: [name] },
      })
    },
  )

  test('is the worst of its collections', async () => {
    const id = await fixture.gateway.upload(ann, fresh('file'))
    const states: [State, string][] = [
      [{ state: 'done' }, 'RAG Available'],
      [{ state: 'pending', stage: 'embedding' }, 'Processing'],
      [{ state: 'pending' }, 'Pending'],
      [{ state: 'skipped' }, 'Not Supported'],
      [{ state: 'failed' }, 'Failed'],
      [{ state: 'done' }, 'Failed'],
    ]
    for (const [state, status] of states) {
      await collect(id, ann, state)
      expect((await show(id))['retrieval_status']).toBe(status)
    }
    expect(Object((await show(id))['retrieval']).collections.length).toBe(states.length)
  })

  test('depends on the collections that the user can see', async () => {
    const { gateway } = fixture
    const id = await gateway.upload(ann, fresh('file'))
    await gateway.share(ann, `/v1/files/${id}`, { type: 'user', subject: 'bob' }, 'viewer')
    const mine = await collect(id, ann, { state: 'done' })
    const theirs = await collect(id, bob, { state: 'failed' })
    expect(await show(id)).toMatchObject({ retrieval: { state: 'completed', collections: [mine] } })
    const { body } = await gateway.send(bob, `/v1/files/${id}`)
    expect(body).toMatchObject({ retrieval_status: 'Failed', retrieval: { collections: [theirs] } })
    const shared = sql`select id from collection where name = ${mine}`
    await fixture.database.drizzle.execute(sql`
      insert into share (id, resource_type, resource_id, principal_type, principal_id, role,
        granted_by, created_at)
      values (gen_random_uuid(), 'collection', (${shared}), 'group', 'staff', 1,
        ${principalOf(ann).userId}, now())`)
    expect(Object((await show(id, bob))['retrieval']).collections).toEqual(
      [mine, theirs].toSorted(),
    )
  })

  test('is a filter of the search', async () => {
    const { gateway } = fixture
    const folder_id = await gateway.folder(ann, fresh('folder'))
    const states: Record<string, State> = { a1: { state: 'done' }, a2: { state: 'failed' } }
    for (const [name, state] of Object.entries(states)) {
      await collect(await gateway.upload(ann, name, { folderId: folder_id }), ann, state)
    }
    await gateway.upload(ann, 'a3', { folderId: folder_id })
    const find = async (retrieval_status: string) => {
      const json = { q: 'a', folder_id, retrieval_status }
      const { body } = await gateway.send(ann, '/v1/files/search', { json })
      return Object(body)['data'].map(({ name }: { name: string }) => name)
    }
    expect(await find('RAG Available')).toEqual(['a1'])
    expect(await find('Failed')).toEqual(['a2'])
    expect(await find('Pending')).toEqual([])
  })
})

test('deleting a collection deletes its shares', async () => {
  const { drizzle } = fixture.database
  const file = await fixture.gateway.upload(ann, fresh('file'))
  const name = await collect(file, ann, null)
  const [row] = await drizzle.execute<{ id: string }>(
    sql`select id from collection where name = ${name}`,
  )
  const id = row?.id ?? ''
  const collection = {
    type: 'collection',
    id,
    ownerId: principalOf(ann).userId,
    role: 'owner',
  } as const
  const grantee = { type: 'everyone', id: '*' } as const
  const grant = { grantee, mustBeKnown: false, role: 'viewer' } as const
  await fixture.gateway.shares.add(principalOf(ann), collection, grant)
  await drizzle.execute(sql`delete from collection where id = ${id}::uuid`)
  expect(await fixture.gateway.shares.list(principalOf(ann), collection)).toEqual([])
})
