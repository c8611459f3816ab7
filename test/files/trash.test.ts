import { describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { outcome, principalOf } from '#test/support/file-gateway.ts'
import { ann, bob, cy, fresh, useFileGateway } from './fixture.ts'

const trashS = 1_000
const fixture = useFileGateway({ files: { trashS } })
const toBob = { type: 'user', subject: 'bob' }
const hourMs = 3_600_000

function remove(path: string, who = ann) {
  return fixture.gateway.send(who, `/v1/${path}`, { method: 'DELETE' })
}

function restore(path: string, who = ann, json?: unknown) {
  const options = json === undefined ? {} : { json }
  return fixture.gateway.send(who, `/v1/${path}/restore`, { method: 'POST', ...options })
}

async function count(table: string, id: string): Promise<number> {
  const column = sql.identifier(table === 'file' ? 'node_id' : table === 'blob' ? 'sha256' : 'id')
  const rows = await fixture.database.drizzle.execute(
    sql`select 1 from ${sql.identifier(table)} where ${column}::text = ${id}`,
  )
  return rows.length
}

describe('the trash', () => {
  test('hides nodes everywhere and lists them for their owner', async () => {
    const { gateway } = fixture
    const folder = await gateway.folder(ann, fresh('folder'))
    const file = await gateway.upload(ann, fresh('findable'), { folderId: folder })
    await gateway.share(ann, `/v1/folders/${folder}`, toBob, 'editor')
    expect(outcome(await remove(`folders/${folder}?recursive=true`, bob))).toBe('200')
    const trash = async (who: typeof ann) =>
      Object(await gateway.send(who, '/v1/files/trash')).body.data
    expect(await trash(ann)).toMatchObject([{ id: folder, object: 'folder' }])
    expect(await trash(bob)).toEqual([])
    for (const who of [ann, bob]) {
      expect(outcome(await gateway.send(who, `/v1/files/${file}`))).toBe('404 not_found')
      const { body } = await gateway.send(who, '/v1/files/search?q=findable')
      expect(body['data']).toEqual([])
    }
    expect(outcome(await restore(`folders/${folder}`, cy))).toBe('404 not_found')
    expect(outcome(await restore(`folders/${folder}`, bob))).toBe('200')
    expect(outcome(await gateway.send(bob, `/v1/files/${file}`))).toBe('200')
    expect(await trash(ann)).toEqual([])
  })

  test('restores what was trashed together, not what was trashed before', async () => {
    const { gateway } = fixture
    const folder = await gateway.folder(ann, fresh('folder'))
    const before = await gateway.upload(ann, 'before', { folderId: folder })
    const along = await gateway.upload(ann, 'along', { folderId: folder })
    await remove(`files/${before}`)
    await remove(`folders/${folder}?recursive=true`)
    await restore(`folders/${folder}`)
    expect(outcome(await gateway.send(ann, `/v1/files/${along}`))).toBe('200')
    expect(outcome(await gateway.send(ann, `/v1/files/${before}`))).toBe('404 not_found')
    const { body } = await restore(`files/${before}`)
    expect([body['folder_id'], body['version']]).toEqual([folder, 3])
  })

  test('restores to the top level if the folder is gone', async () => {
    const { gateway } = fixture
    const folder = await gateway.folder(ann, fresh('folder'))
    const file = await gateway.upload(ann, fresh('file'), { folderId: folder })
    await remove(`folders/${folder}?recursive=true`)
    expect((await restore(`files/${file}`)).body['folder_id']).toBeNull()
    expect((await restore(`folders/${folder}`)).body['child_counts']).toEqual({
      files: 0,
      folders: 0,
    })
  })

  test('restores only to a free name', async () => {
    const { gateway } = fixture
    const folderId = await gateway.folder(ann, fresh('folder'))
    const file = await gateway.upload(ann, 'a.txt', { folderId })
    await remove(`files/${file}`)
    await gateway.upload(ann, 'A.TXT', { folderId })
    expect(outcome(await restore(`files/${file}`))).toBe('409 name_conflict')
    const { body } = await restore(`files/${file}`, ann, { on_conflict: 'rename' })
    expect([body['name'], body['folder_id']]).toEqual(['a (2).txt', folderId])
    expect(outcome(await restore(`files/${file}`))).toBe('200')
  })

  test('cannot restore after the retention time, and is emptied', async () => {
    const { gateway } = fixture
    const folder = await gateway.folder(ann, fresh('folder'))
    const text = fresh('content')
    const file = await gateway.upload(ann, 'file', { folderId: folder, text })
    const sha256 = new Bun.CryptoHasher('sha256').update(text).digest('hex')
    const share = await gateway.share(ann, `/v1/files/${file}`, toBob, 'viewer')
    await remove(`folders/${folder}?recursive=true`)
    gateway.pass(trashS * 1_000 - 60_000)
    await gateway.sweep()
    expect(await count('file', file)).toBe(1)
    gateway.pass(60_000)
    expect(outcome(await restore(`files/${file}`))).toBe('410 purged')
    expect(outcome(await restore(`files/${file}`, bob))).toBe('404 not_found')
    gateway.changes.length = 0
    await gateway.sweep()
    expect(gateway.changes).toContainEqual({ kind: 'deleted', fileIds: [file] })
    expect(outcome(await restore(`files/${file}`))).toBe('410 purged')
    expect(outcome(await restore(`folders/${folder}`))).toBe('410 purged')
    expect([await count('file', file), await count('share', share)]).toEqual([0, 1])
    gateway.pass(trashS * 1_000)
    await gateway.sweep()
    expect(outcome(await restore(`folders/${folder}`))).toBe('404 not_found')
    expect([await count('node', file), await count('share', share)]).toEqual([0, 0])
    gateway.pass(hourMs)
    await gateway.sweep()
    expect([await count('blob', sha256), await gateway.storage.has(sha256)]).toEqual([0, false])
  })
})

describe('permanent deletion', () => {
  test('removes a file at once, also from the trash, and requires its owner', async () => {
    const { gateway } = fixture
    const id = await gateway.upload(ann, fresh('file'))
    await gateway.share(ann, `/v1/files/${id}`, toBob, 'manager')
    const path = `files/${id}?permanent=true`
    expect(outcome(await remove(path, bob))).toBe('403 permission_denied')
    expect(outcome(await remove(`files/${id}`, bob))).toBe('200')
    expect(outcome(await remove(path, bob))).toBe('404 not_found')
    expect((await remove(path)).body).toEqual({ id, object: 'file', deleted: true })
    expect(outcome(await remove(path))).toBe('404 not_found')
    expect(outcome(await restore(`files/${id}`))).toBe('404 not_found')
  })

  test('happens when a file expires', async () => {
    const { gateway } = fixture
    const id = await gateway.upload(ann, fresh('file'), { lifetimeS: 360_000 })
    const { body } = await gateway.send(ann, `/v1/files/${id}`)
    const createdMs = Date.parse(String(body['created_at_iso']))
    expect(body['expires_at_iso']).toBe(new Date(createdMs + 100 * hourMs).toISOString())
    expect(body['expires_at']).toBe(Number(body['created_at']) + 360_000)
    await gateway.sweep()
    expect(outcome(await gateway.send(ann, `/v1/files/${id}`))).toBe('200')
    gateway.pass(101 * hourMs)
    gateway.changes.length = 0
    await gateway.sweep()
    expect(gateway.changes).toEqual([{ kind: 'deleted', fileIds: [id] }])
    expect(outcome(await gateway.send(ann, `/v1/files/${id}`))).toBe('404 not_found')
  })
})

describe('content', () => {
  const hashOf = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex')

  test('is kept while any file uses it', async () => {
    const { gateway } = fixture
    const text = fresh('shared content')
    const one = await gateway.upload(ann, fresh('one'), { text })
    const two = await gateway.upload(bob, fresh('two'), { text })
    gateway.pass(2 * hourMs)
    await remove(`files/${one}?permanent=true`)
    await gateway.sweep()
    expect(await gateway.storage.has(hashOf(text))).toBe(true)
    await gateway.send(bob, `/v1/files/${two}?permanent=true`, { method: 'DELETE' })
    await gateway.sweep()
    expect(await gateway.storage.has(hashOf(text))).toBe(false)
  })

  test('is kept for an hour after its upload', async () => {
    const { gateway } = fixture
    const text = fresh('refused content')
    const folderId = await gateway.folder(ann, fresh('folder'))
    await gateway.upload(ann, 'taken', { folderId })
    await expect(gateway.upload(ann, 'taken', { folderId, text })).rejects.toThrow()
    await gateway.sweep()
    expect(await gateway.storage.has(hashOf(text))).toBe(true)
    gateway.pass(hourMs)
    await gateway.sweep()
    expect(await gateway.storage.has(hashOf(text))).toBe(false)
  })

  test('survives concurrent sweeps of several processes', async () => {
    const { gateway } = fixture
    const ids: string[] = []
    for (let file = 0; file < 30; file++) ids.push(await gateway.upload(ann, fresh('many')))
    for (const id of ids) await remove(`files/${id}`)
    gateway.pass(trashS * 1_000 + 2 * hourMs)
    gateway.changes.length = 0
    await Promise.all([gateway.sweep(), gateway.sweep(), gateway.sweep()])
    const received = gateway.changes
      .flatMap(({ fileIds }) => fileIds)
      .filter((id) => ids.includes(id))
    expect(received.toSorted()).toEqual(ids.toSorted())
    const { userId } = principalOf(ann)
    const left = await fixture.database.drizzle.execute(sql`select 1 from file
      join node on node.id = file.node_id where owner_id = ${userId} and name like 'many%'`)
    expect(left.length).toBe(0)
  })
})
