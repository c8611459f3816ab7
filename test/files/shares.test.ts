import { beforeAll, describe, expect, test } from 'bun:test'
import { outcome, type Person, principalOf } from '#test/support/file-gateway.ts'
import { ann, bob, cy, fresh, useFileGateway } from './fixture.ts'

const fixture = useFileGateway()
const toBob = { type: 'user', subject: 'bob' }

beforeAll(async () => {
  for (const who of [ann, bob, cy]) await fixture.gateway.send(who, '/v1/files')
})

function post(path: string, json: unknown, who: Person = ann) {
  return fixture.gateway.send(who, `${path}/shares`, { json })
}

async function shared(role: string): Promise<{ folder: string; file: string; share: string }> {
  const { gateway } = fixture
  const folder = `/v1/folders/${await gateway.folder(ann, fresh('folder'))}`
  const folderId = folder.slice('/v1/folders/'.length)
  const file = `/v1/files/${await gateway.upload(ann, 'file', { folderId })}`
  return { folder, file, share: await gateway.share(ann, folder, toBob, role) }
}

describe('a share', () => {
  test('is unique per grantee, and sharing again changes the role', async () => {
    const { folder, file } = await shared('viewer')
    const again = await post(folder, { principal: toBob, role: 'editor' })
    expect([again.status, again.body]).toMatchObject([
      200,
      {
        object: 'share',
        principal: { type: 'user', id: principalOf(bob).userId, name: 'bob' },
        role: 'editor',
        inherited_from: null,
        granted_by: principalOf(ann).userId,
      },
    ])
    const byId = await post(folder, {
      principal: { type: 'user', id: principalOf(bob).userId.toUpperCase() },
      role: 'manager',
    })
    expect([byId.status, byId.body['id']]).toEqual([200, again.body['id']])
    expect((await fixture.gateway.send(bob, file)).body['my_role']).toBe('manager')
  })

  test('may be for a user who has never signed in, by their subject', async () => {
    const { gateway } = fixture
    const late = { subject: fresh('late'), groups: ['users'] }
    const file = `/v1/files/${await gateway.upload(ann, fresh('file'))}`
    const { id } = { id: principalOf(late).userId }
    const unknown = await post(file, { principal: { type: 'user', id }, role: 'viewer' })
    expect(outcome(unknown)).toBe('422 principal_not_found')
    const principal = { type: 'user', subject: late.subject }
    const { body } = await post(file, { principal, role: 'viewer' })
    expect(body['principal']).toEqual({ type: 'user', id, name: null })
    expect(outcome(await gateway.send(late, file))).toBe('200')
  })

  test('may be for a group, or for everyone', async () => {
    const { gateway } = fixture
    const file = `/v1/files/${await gateway.upload(ann, fresh('file'))}`
    const group = await post(file, { principal: { type: 'group', id: 'staff' }, role: 'editor' })
    expect(group.body['principal']).toEqual({ type: 'group', id: 'staff', name: 'staff' })
    expect(outcome(await gateway.send(cy, file))).toBe('404 not_found')
    expect((await gateway.send(bob, file)).body['my_role']).toBe('editor')
    const everyone = await post(file, { principal: { type: 'everyone' }, role: 'viewer' })
    expect(everyone.body['principal']).toEqual({ type: 'everyone', id: '*', name: null })
    expect((await gateway.send(cy, file)).body['my_role']).toBe('viewer')
    expect((await gateway.send(bob, file)).body['my_role']).toBe('editor')
    await gateway.send(ann, `${file}/shares/${everyone.body['id']}`, { method: 'DELETE' })
    expect(outcome(await gateway.send(cy, file))).toBe('404 not_found')
  })

  test('cannot be for the owner', async () => {
    const { folder } = await shared('manager')
    const principal = { type: 'user', subject: 'ann' }
    const response = await post(folder, { principal, role: 'viewer' }, bob)
    expect(outcome(response)).toBe('422 principal_is_owner')
  })

  test.each(['viewer', 'editor'])('cannot be created or changed by a %s', async (role) => {
    const { gateway } = fixture
    const { folder, file, share } = await shared(role)
    await gateway.send({ subject: 'gil', groups: ['users', 'guild'] }, '/v1/files')
    const others = await gateway.share(ann, folder, { type: 'group', id: 'guild' }, 'viewer')
    const change = { method: 'PATCH', json: { role: 'manager' } }
    const responses = [
      await post(folder, { principal: { type: 'everyone' }, role: 'viewer' }, bob),
      await post(file, { principal: { type: 'everyone' }, role: 'viewer' }, bob),
      await gateway.send(bob, `${folder}/shares/${share}`, change),
      await gateway.send(bob, `${folder}/shares/${others}`, change),
      await gateway.send(bob, `${folder}/shares/${others}`, { method: 'DELETE' }),
      await gateway.send(bob, `${file}/access?user_id=${principalOf(cy).userId}`),
    ]
    const denied = '403 permission_denied'
    const hidden = '404 not_found'
    expect(responses.map(outcome)).toEqual([denied, denied, denied, hidden, hidden, denied])
    const { body } = await gateway.send(bob, `${folder}/shares`)
    expect(Object(body)['data'].map(({ id }: { id: string }) => id)).toEqual([share])
  })

  test('can be removed by the grantee', async () => {
    const { gateway } = fixture
    const { folder, file, share } = await shared('viewer')
    const remove = (path: string) =>
      gateway.send(bob, `${path}/shares/${share}`, { method: 'DELETE' })
    expect(outcome(await remove(file))).toBe('409 inherited')
    expect((await remove(folder)).body).toEqual({ id: share, object: 'share', deleted: true })
    expect(outcome(await remove(folder))).toBe('404 not_found')
  })

  test('of a folder is listed at its content, and can only be changed at the folder', async () => {
    const { gateway } = fixture
    const { folder, file, share } = await shared('editor')
    const own = await gateway.share(ann, file, { type: 'everyone' }, 'viewer')
    const { body } = await gateway.send(ann, `${file}/shares`)
    const { name, id } = (await gateway.send(ann, folder)).body
    expect(body['data']).toMatchObject([
      { id: own, inherited_from: null },
      { id: share, role: 'editor', inherited_from: { type: 'folder', id, name } },
    ])
    const change = { method: 'PATCH', json: { role: 'viewer' } }
    const at = (path: string) => gateway.send(ann, `${path}/shares/${share}`, change)
    expect(outcome(await at(file))).toBe('409 inherited')
    const response = await at(folder)
    expect([response.status, response.body['role']]).toEqual([200, 'viewer'])
    expect((await gateway.send(bob, file)).body['my_role']).toBe('viewer')
  })

  test('does not disclose the name of an unreadable folder above', async () => {
    const { gateway } = fixture
    const { folder, file } = await shared('viewer')
    await gateway.share(ann, file, { type: 'user', subject: 'cy' }, 'manager')
    const { body } = await gateway.send(cy, `${file}/shares`)
    const { id } = (await gateway.send(ann, folder)).body
    expect(body['data']).toMatchObject([
      { principal: { name: 'cy' } },
      { principal: { name: 'bob' }, inherited_from: { id, name: null } },
    ])
  })

  test('moves with its node; inherited shares do not', async () => {
    const { gateway } = fixture
    const { file } = await shared('editor')
    await gateway.share(ann, file, { type: 'user', subject: 'cy' }, 'viewer')
    await gateway.send(ann, `${file}/move`, {
      json: { folder_id: await gateway.folder(ann, fresh('other')) },
    })
    expect(outcome(await gateway.send(cy, file))).toBe('200')
    expect(outcome(await gateway.send(bob, file))).toBe('404 not_found')
  })
})

describe('access', () => {
  test('is explained with all reasons', async () => {
    const { gateway } = fixture
    const { folder, file } = await shared('viewer')
    await gateway.share(ann, folder, { type: 'group', id: 'staff' }, 'editor')
    await gateway.share(ann, file, { type: 'everyone' }, 'manager')
    const ask = (who: Person, of?: Person) =>
      gateway.send(who, `${file}/access${of ? `?user_id=${principalOf(of).userId}` : ''}`)
    const { body } = await ask(ann, bob)
    expect(body).toMatchObject({
      object: 'access',
      user: { id: principalOf(bob).userId, name: 'bob' },
      role: 'manager',
      via: [
        { type: 'share', share: { role: 'manager', principal: { type: 'everyone' } } },
        { type: 'share', share: { role: 'viewer', principal: { type: 'user' } } },
        { type: 'share', share: { role: 'editor', principal: { type: 'group', id: 'staff' } } },
      ],
    })
    expect((await ask(bob)).body).toMatchObject({ role: 'manager' })
    expect((await ask(ann)).body).toMatchObject({ role: 'owner', via: [{ type: 'owner' }, {}] })
    const unknownUser = await gateway.send(ann, `${folder}/access?user_id=${Bun.randomUUIDv7()}`)
    expect(unknownUser.body).toMatchObject({ role: null, via: [], user: { name: null } })
    expect(outcome(await gateway.send(ann, `${file}/access?user_id=bob`))).toBe('422 unprocessable')
  })
})

test('users and groups are found by a part of their name', async () => {
  const { gateway } = fixture
  const odd = { subject: '100%_Odd\\', groups: ['users', 'oddities'] }
  await gateway.send(odd, '/v1/files')
  const find = async (q: string) =>
    Object(await gateway.send(ann, `/v1/principals?q=${encodeURIComponent(q)}`)).body.data
  expect(await find('ODD')).toEqual([
    { type: 'group', id: 'oddities', name: 'oddities' },
    { type: 'user', id: principalOf(odd).userId, name: odd.subject },
  ])
  expect(await find('%_o')).toMatchObject([{ name: odd.subject }])
  expect(await find('%%')).toEqual([])
})

describe('with the people picker disabled', () => {
  const closed = useFileGateway({ files: { peoplePicker: false } })
  test('the search is refused', async () => {
    const response = await closed.gateway.send(ann, '/v1/principals?q=a')
    expect(outcome(response)).toBe('403 people_picker_off')
  })
})

test('a collection is shared in the same way, with the role that its feature provides', async () => {
  const { shares } = fixture.gateway
  const id = Bun.randomUUIDv7()
  const collection = (role: 'viewer' | 'manager' | 'owner') =>
    ({ type: 'collection', id, ownerId: principalOf(ann).userId, role }) as const
  const grant = {
    grantee: { type: 'group', id: 'staff' },
    mustBeKnown: false,
    role: 'viewer',
  } as const
  const { share, isNew } = await shares.add(principalOf(ann), collection('owner'), grant)
  expect(isNew).toBe(true)
  const denied = shares.add(principalOf(bob), collection('viewer'), grant)
  await expect(denied).rejects.toMatchObject({ status: 403 })
  expect(await shares.list(principalOf(cy), collection('viewer'))).toEqual([])
  expect(await shares.list(principalOf(bob), collection('viewer'))).toMatchObject([
    { id: share.id },
  ])
  await shares.change(principalOf(bob), collection('manager'), share.id, 'editor')
  const access = await shares.access(principalOf(ann), collection('owner'), principalOf(bob).userId)
  expect(access).toMatchObject({ role: 'editor', via: [{ type: 'share' }] })
  await shares.remove(principalOf(ann), collection('owner'), share.id)
  expect(await shares.list(principalOf(ann), collection('owner'))).toEqual([])
})
