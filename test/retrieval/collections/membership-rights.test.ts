import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { outcome, type Person, principalOf } from '#test/support/file-gateway.ts'
import { type RetrievalGateway, startRetrievalGateway } from '#test/support/retrieval-gateway.ts'

/**
 * Ann owns a file. Bob may manage it and adds it to his collection, which opens its files to everyone.
 * The membership opens the file only while Bob may share it.
 */

let database: TestDatabase
let gateway: RetrievalGateway
beforeAll(async () => {
  database = await openTestDatabase()
  gateway = await startRetrievalGateway(database)
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

const ann: Person = { subject: 'ann', groups: ['users'] }
const cy: Person = { subject: 'cy', groups: ['users'] }
const everyone = { principal: { type: 'everyone' }, role: 'viewer' }

let bob: Person
let name = ''
let folder = ''
let fileId = ''
beforeEach(async () => {
  const suffix = crypto.randomUUID().slice(0, 8)
  bob = { subject: `bob ${suffix}`, groups: ['users', `staff-${suffix}`] }
  name = `open-${suffix}`
  await gateway.send(bob, '/v1/collections', { json: { name, access_mode: 'collection' } })
  await gateway.send(bob, `/v1/collections/${name}/shares`, { json: everyone })
  folder = await gateway.files.folder(ann, suffix)
  fileId = await gateway.files.upload(ann, 'secret.txt', {
    folderId: folder,
    text: 'the secret recipe',
  })
})

const toBob = () => ({ type: 'user', id: principalOf(bob).userId })
const share = (principal: object, path = `files/${fileId}`) =>
  gateway.files.share(ann, `/v1/${path}`, principal, 'manager')

async function addAsBob(): Promise<void> {
  const added = await gateway.send(bob, `/v1/collections/${name}/files`, {
    json: { file_id: fileId },
  })
  expect(outcome(added)).toBe('202')
  await gateway.settled()
  expect(await found()).toBe(true)
}

/** Whether a stranger finds the file, by its passages and in the list of the collection. */
async function found(who = cy): Promise<boolean> {
  const path = `/v1/collections/${name}`
  const { body } = await gateway.send(who, `${path}/search`, { json: { query: 'secret recipe' } })
  const listed = Object(await gateway.send(who, `${path}/files`)).body['data']
  const isFound = Object(body['data']).length > 0
  expect(listed.length > 0).toBe(isFound)
  return isFound
}

const memberships = async (who: Person) => {
  const answer = await gateway.send(who, `/v1/files/${fileId}/collections`)
  return answer.status === 200 ? Object(answer.body['data']) : outcome(answer)
}

const access = async (who: Person) => {
  const query = `user_id=${principalOf(who).userId}`
  return (await gateway.files.send(ann, `/v1/files/${fileId}/access?${query}`)).body
}

const send = (path: string, method: string, json?: unknown) =>
  gateway.files.send(ann, `/v1/${path}`, { method, ...(json === undefined ? {} : { json }) })

/** Each way in which Bob gets the right to share the file, and each way in which he loses it. */
const endings: Record<string, () => Promise<() => Promise<unknown>>> = {
  'the share is deleted': async () => {
    const id = await share(toBob())
    return () => send(`files/${fileId}/shares/${id}`, 'DELETE')
  },
  'the role of the share is lowered': async () => {
    const id = await share(toBob())
    return () => send(`files/${fileId}/shares/${id}`, 'PATCH', { role: 'editor' })
  },
  'the share of a folder is deleted': async () => {
    const id = await share(toBob(), `folders/${folder}`)
    return () => send(`folders/${folder}/shares/${id}`, 'DELETE')
  },
  'the file is moved out of the shared folder': async () => {
    await share(toBob(), `folders/${folder}`)
    return () => send(`files/${fileId}/move`, 'POST', { folder_id: null })
  },
  'the folder is moved out of the shared folder': async () => {
    const outer = await gateway.files.folder(ann, `outer ${name}`)
    await send(`folders/${folder}/move`, 'POST', { folder_id: outer })
    await share(toBob(), `folders/${outer}`)
    return () => send(`folders/${folder}/move`, 'POST', { folder_id: null })
  },
  'the manager leaves the group': async () => {
    await share({ type: 'group', id: bob.groups[1] })
    return async () => {
      await database.drizzle.execute(sql`
        delete from group_member where user_id = ${principalOf(bob).userId}::uuid
          and group_name = ${bob.groups[1]}`)
    }
  },
  'the manager is disabled': async () => {
    await share(toBob())
    return async () => {
      await database.drizzle.execute(sql`
        update app_user set disabled_at = now() where id = ${principalOf(bob).userId}::uuid`)
    }
  },
}

test.each(Object.entries(endings))('a membership ends when %s', async (_, grant) => {
  const revoke = await grant()
  await addAsBob()
  expect(await access(cy)).toMatchObject({ role: null, via: [{ type: 'collection' }] })
  expect(await memberships(ann)).toMatchObject([{ name, open: true }])
  await revoke()
  expect(await found()).toBe(false)
  expect(await found(ann)).toBe(true)
  expect(await access(cy)).toMatchObject({ role: null, via: [] })
  expect(await memberships(ann)).toMatchObject([
    { name, open: false, shared_by: { id: principalOf(bob).userId } },
  ])
})

test('a membership added by the owner survives the loss of rights of a manager', async () => {
  const id = await share(toBob())
  await addAsBob()
  await gateway.send(bob, `/v1/collections/${name}/shares`, {
    json: { ...everyone, role: 'editor' },
  })
  const path = `/v1/collections/${name}/files`
  await gateway.send(ann, path, { json: { file_id: fileId } })
  await gateway.send(bob, path, { json: { file_id: fileId } })
  await send(`files/${fileId}/shares/${id}`, 'DELETE')
  expect(await found()).toBe(true)
})

test('a collection that is opened later depends on who opened it', async () => {
  await gateway.send(bob, `/v1/collections/${name}`, {
    method: 'PATCH',
    json: { access_mode: 'files' },
  })
  const dee: Person = { subject: `dee ${name}`, groups: ['users'] }
  await gateway.send(bob, `/v1/collections/${name}/shares`, {
    json: { principal: { type: 'user', subject: dee.subject }, role: 'editor' },
  })
  await gateway.files.share(ann, `/v1/files/${fileId}`, { type: 'everyone' }, 'viewer')
  const added = await gateway.send(dee, `/v1/collections/${name}/files`, {
    json: { file_id: fileId },
  })
  expect(outcome(added)).toBe('202')
  await gateway.settled()
  const id = await share(toBob())
  await send(`files/${fileId}/shares`, 'POST', { principal: { type: 'everyone' }, role: 'viewer' })
  const opened = await gateway.send(bob, `/v1/collections/${name}`, {
    method: 'PATCH',
    json: { access_mode: 'collection' },
  })
  expect(outcome(opened)).toBe('200')
  expect(await memberships(ann)).toMatchObject([
    { open: true, shared_by: { id: principalOf(bob).userId } },
  ])
  await send(`files/${fileId}/shares/${id}`, 'DELETE')
  expect(await memberships(ann)).toMatchObject([{ open: false }])
})

test('members by folder depend on who chose the folder', async () => {
  const dee: Person = { subject: `dee ${name}`, groups: ['users'] }
  const principal = { type: 'user', subject: dee.subject }
  await gateway.send(bob, `/v1/collections/${name}/shares`, {
    json: { principal, role: 'manager' },
  })
  const id = await share(principal, `folders/${folder}`)
  const change = { method: 'PATCH', json: { folder_id: folder } }
  expect(outcome(await gateway.send(dee, `/v1/collections/${name}`, change))).toBe('200')
  await gateway.settled()
  expect(await found()).toBe(true)
  const later = await gateway.files.upload(ann, 'later.txt', { folderId: folder })
  const open = await gateway.send(ann, `/v1/files/${later}/collections`)
  expect(open.body['data']).toMatchObject([{ open: true, followed: true }])
  await send(`folders/${folder}/shares/${id}`, 'DELETE')
  expect(await found()).toBe(false)
})

test('the owner of a file removes it from a collection that they do not see', async () => {
  await gateway.send(bob, '/v1/collections', { json: { name: `${name}-hidden` } })
  await share(toBob())
  await gateway.send(bob, `/v1/collections/${name}-hidden/files`, { json: { file_id: fileId } })
  const [membership] = await memberships(ann)
  expect(membership).toMatchObject({ name: `${name}-hidden`, open: false, access_mode: 'files' })
  const removed = await gateway.send(ann, `/v1/files/${fileId}/collections/${membership.id}`, {
    method: 'DELETE',
  })
  expect(removed.body).toEqual({
    id: membership.id,
    object: 'file.collection.deleted',
    deleted: true,
  })
  expect(await memberships(ann)).toEqual([])
})

test('a file that its owner removes does not come back with its folder', async () => {
  await share(toBob(), `folders/${folder}`)
  const change = { method: 'PATCH', json: { folder_id: folder } }
  await gateway.send(bob, `/v1/collections/${name}`, change)
  const [{ id }] = await memberships(ann)
  await gateway.send(ann, `/v1/files/${fileId}/collections/${id}`, { method: 'DELETE' })
  const inner = await gateway.files.folder(ann, 'inner', folder)
  await send(`files/${fileId}/move`, 'POST', { folder_id: inner })
  await gateway.send(bob, `/v1/collections/${name}`, { method: 'PATCH', json: { folder_id: null } })
  await gateway.send(bob, `/v1/collections/${name}`, change)
  expect(await memberships(ann)).toEqual([])
  const added = await gateway.send(bob, `/v1/collections/${name}/files`, {
    json: { file_id: fileId },
  })
  expect(outcome(added)).toBe('202')
  expect(await memberships(ann)).toHaveLength(1)
})

test('only managers of a file see its memberships', async () => {
  await gateway.files.share(ann, `/v1/files/${fileId}`, { type: 'everyone' }, 'editor')
  expect(await memberships(cy)).toBe('403 permission_denied')
  const path = `/v1/files/${fileId}/collections/${crypto.randomUUID()}`
  expect(outcome(await gateway.send(cy, path, { method: 'DELETE' }))).toBe('403 permission_denied')
  expect(outcome(await gateway.send(ann, path, { method: 'DELETE' }))).toBe('404 not_found')
  const other = await gateway.send(cy, `/v1/files/${crypto.randomUUID()}/collections`)
  expect(outcome(other)).toBe('404 not_found')
})
