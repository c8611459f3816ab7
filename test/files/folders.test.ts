import { describe, expect, test } from 'bun:test'
import { outcome, principalOf } from '#test/support/file-gateway.ts'
import { ann, bob, cy, fresh, useFileGateway } from './fixture.ts'

const fixture = useFileGateway({ files: { perOwnerMax: 300 } })
const toBob = { type: 'user', subject: 'bob' }

function move(id: string, folderId: unknown, who = ann, kind = 'folders') {
  return fixture.gateway.send(who, `/v1/${kind}/${id}/move`, { json: { folder_id: folderId } })
}

describe('nested folders', () => {
  async function tower(height: number, from: string | null = null): Promise<string[]> {
    const ids: string[] = []
    for (let level = 0; level < height; level++) {
      ids.push(await fixture.gateway.folder(ann, fresh('level'), ids.at(-1) ?? from))
    }
    return ids
  }

  test('may be 32 deep, with files in the deepest', async () => {
    const { gateway } = fixture
    const ids = await tower(32)
    const deepest = ids.at(-1) ?? ''
    const json = { name: 'too deep', folder_id: deepest }
    expect(outcome(await gateway.send(ann, '/v1/folders', { json }))).toBe('422 folder_too_deep')
    const file = await gateway.upload(ann, 'deep.txt', { folderId: deepest })
    const { body } = await gateway.send(ann, `/v1/folders/${deepest}`)
    expect(Object(body)['path'].map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, -1))
    expect(outcome(await gateway.send(ann, `/v1/files/${file}`))).toBe('200')
    const [two] = await tower(2)
    expect(outcome(await move(two ?? '', ids[30]))).toBe('422 folder_too_deep')
    expect(outcome(await move(two ?? '', ids[29]))).toBe('200')
  })

  test('cannot be moved into themselves', async () => {
    const [top = '', middle, bottom] = await tower(3)
    for (const to of [top, middle, bottom]) {
      expect(outcome(await move(top, to))).toBe('409 folder_cycle')
    }
    const json = { folder_id: bottom, name: 'renamed' }
    const patched = await fixture.gateway.send(ann, `/v1/folders/${top}`, { method: 'PATCH', json })
    expect(outcome(patched)).toBe('409 folder_cycle')
    const { body } = await fixture.gateway.send(ann, `/v1/folders/${top}`)
    expect([body['folder_id'], body['version']]).toEqual([null, 1])
  })

  test('can be renamed and moved in one change', async () => {
    const [from = '', to = ''] = [...(await tower(1)), ...(await tower(1))]
    const json = { name: 'Both', folder_id: to }
    const response = await fixture.gateway.send(ann, `/v1/folders/${from}`, {
      method: 'PATCH',
      json,
    })
    const { name, folder_id, version } = Object(response.body)
    expect([name, folder_id, version]).toEqual(['Both', to, 2])
    expect(response.headers.get('etag')).toBe('"2"')
  })
})

describe('deleting a folder', () => {
  test('requires recursive=true unless it is empty', async () => {
    const { gateway } = fixture
    const top = await gateway.folder(ann, fresh('full'))
    const inner = await gateway.folder(ann, 'inner', top)
    const file = await gateway.upload(ann, 'file', { folderId: inner })
    const remove = (query = '') =>
      gateway.send(ann, `/v1/folders/${top}${query}`, { method: 'DELETE' })
    expect(outcome(await remove())).toBe('409 folder_not_empty')
    expect(outcome(await remove('?recursive=false'))).toBe('409 folder_not_empty')
    expect(outcome(await remove('?recursive=yes'))).toBe('422 unprocessable')
    expect((await remove('?recursive=true')).body).toEqual({
      id: top,
      object: 'folder',
      deleted: true,
      files: 1,
      folders: 2,
    })
    for (const path of [`folders/${top}`, `folders/${inner}`, `files/${file}`]) {
      expect(outcome(await gateway.send(ann, `/v1/${path}`))).toBe('404 not_found')
    }
    expect(outcome(await remove('?recursive=true'))).toBe('404 not_found')
  })

  test('needs no option if it is empty', async () => {
    const id = await fixture.gateway.folder(ann, fresh('empty'))
    const response = await fixture.gateway.send(ann, `/v1/folders/${id}`, { method: 'DELETE' })
    expect(response.body).toMatchObject({ files: 0, folders: 1 })
  })
})

describe('a shared folder', () => {
  test('gives its owner what others create in it', async () => {
    const { gateway } = fixture
    const folder = await gateway.folder(ann, fresh('team'))
    await gateway.share(ann, `/v1/folders/${folder}`, toBob, 'editor')
    const file = await gateway.upload(bob, 'of bob.txt', { folderId: folder })
    const { body } = await gateway.send(bob, `/v1/files/${file}`)
    expect([Object(body['owner']).name, body['created_by'], body['my_role']]).toEqual([
      'ann',
      principalOf(bob).userId,
      'editor',
    ])
    expect(outcome(await move(file, null, bob, 'files'))).toBe('403 move_out_of_share')
    const own = await gateway.folder(bob, fresh('own'))
    expect(outcome(await move(file, own, bob, 'files'))).toBe('403 move_out_of_share')
    const json = { folder_id: own }
    const copy = await gateway.send(bob, `/v1/files/${file}/copy`, { json })
    expect([copy.status, Object(copy.body['owner']).name]).toEqual([201, 'bob'])
  })

  test('transfers ownership of moved trees', async () => {
    const { gateway } = fixture
    const team = await gateway.folder(ann, fresh('team'))
    await gateway.share(ann, `/v1/folders/${team}`, toBob, 'editor')
    const gift = await gateway.folder(bob, fresh('gift'))
    const file = await gateway.upload(bob, 'inside.txt', { folderId: gift })
    const secret = await gateway.upload(bob, 'secret.txt', { folderId: gift })
    await gateway.send(bob, `/v1/files/${secret}`, { method: 'DELETE' })
    await gateway.share(bob, `/v1/files/${file}`, { type: 'user', subject: 'cy' }, 'viewer')
    expect(outcome(await move(gift, team, bob))).toBe('200')
    const { body } = await gateway.send(bob, `/v1/files/${file}`)
    expect([Object(body['owner']).name, body['my_role']]).toEqual(['ann', 'editor'])
    expect(outcome(await gateway.send(cy, `/v1/files/${file}`))).toBe('200')
    // Trashed nodes keep their owner.
    const restore = (who: typeof ann) =>
      gateway.send(who, `/v1/files/${secret}/restore`, { method: 'POST' })
    expect(outcome(await restore(ann))).toBe('404 not_found')
    const { status, body: restored } = await restore(bob)
    expect([status, Object(restored['owner']).name, restored['folder_id']]).toEqual([
      200,
      'bob',
      null,
    ])
  })

  test('cannot be changed by viewers', async () => {
    const { gateway } = fixture
    const folder = await gateway.folder(ann, fresh('to read'))
    await gateway.share(ann, `/v1/folders/${folder}`, { type: 'everyone' }, 'viewer')
    const json = { name: 'x', folder_id: folder }
    const responses = [
      await gateway.send(bob, '/v1/folders', { json }),
      await gateway.send(bob, `/v1/folders/${folder}`, { method: 'PATCH', json: { name: 'x' } }),
      await gateway.send(bob, `/v1/folders/${folder}`, { method: 'DELETE' }),
      await move(folder, await gateway.folder(bob, fresh('away')), bob),
    ]
    expect(responses.map(outcome)).toEqual(Array(4).fill('403 permission_denied'))
    const upload = gateway.upload(bob, 'x', { folderId: folder })
    await expect(upload).rejects.toMatchObject({ status: 403 })
  })

  test('is not found by users without access', async () => {
    const { gateway } = fixture
    const hidden = await gateway.folder(ann, fresh('hidden'))
    const nothing = Bun.randomUUIDv7()
    const bodies: unknown[] = []
    for (const id of [hidden, nothing]) {
      const own = await gateway.folder(bob, fresh('own'))
      const responses = [
        await gateway.send(bob, `/v1/folders/${id}`),
        await gateway.send(bob, `/v1/folders/${id}`, { method: 'PATCH', json: { colour: 1 } }),
        await gateway.send(bob, `/v1/folders/${id}?recursive=true`, { method: 'DELETE' }),
        await gateway.send(bob, `/v1/folders/${id}/restore`, { method: 'POST' }),
        await gateway.send(bob, `/v1/folders/${id}/shares`, { json: {} }),
        await gateway.send(bob, `/v1/files/children?folder_id=${id}`),
        await gateway.send(bob, `/v1/files/search?q=a&folder_id=${id}`),
        await gateway.send(bob, '/v1/folders', { json: { name: 'x', folder_id: id } }),
        await move(own, id, bob),
      ]
      expect(responses.map(outcome)).toEqual(Array(9).fill('404 not_found'))
      bodies.push(responses.map(({ body }) => JSON.stringify(body).replaceAll(id, 'ID')))
      const upload = gateway.upload(bob, 'x', { folderId: id })
      await expect(upload).rejects.toMatchObject({ status: 404, param: 'folder_id' })
    }
    expect(bodies[0]).toEqual(bodies[1])
  })
})

test('a tree has a limited number of nodes', async () => {
  const { gateway } = fixture
  const dee = { subject: 'dee', groups: ['users'] }
  const folderId = await gateway.folder(dee, 'all of it')
  const { userId } = principalOf(dee)
  await fixture.database.drizzle.execute(`insert into node (id, kind, parent_id, owner_id, created_by,
    name, name_key, created_at, updated_at) select gen_random_uuid(), 'folder', '${folderId}',
    '${userId}', '${userId}', n::text, n::text, now(), now() from generate_series(1, 298) n`)
  const file = await gateway.upload(dee, 'the last')
  const full = { status: 422, wireCode: 'too_many_files' }
  await expect(gateway.upload(dee, 'one more')).rejects.toMatchObject(full)
  const responses = [
    await gateway.send(dee, '/v1/folders', { json: { name: 'one more' } }),
    await gateway.send(dee, `/v1/files/${file}/copy`, { json: { name: 'one more' } }),
  ]
  expect(responses.map(outcome)).toEqual(Array(2).fill('422 too_many_files'))
  const gift = await gateway.folder(ann, fresh('gift'))
  await gateway.share(dee, `/v1/folders/${folderId}`, { type: 'everyone' }, 'editor')
  expect(outcome(await move(gift, folderId))).toBe('422 too_many_files')
})
