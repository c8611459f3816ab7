import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { type Database, openDatabase } from '#db/client.ts'
import { openTestDatabase, serverUrl, type TestDatabase } from '#test/support/database.ts'
import { createDice } from '#test/support/dice.ts'
import {
  type FileGateway,
  outcome,
  principalOf,
  startFileGateway,
} from '#test/support/file-gateway.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { ann, bob, fresh } from './fixture.ts'

let database: TestDatabase
let second: Database
let here: FileGateway
let there: FileGateway

beforeAll(async () => {
  database = await openTestDatabase()
  // The embedded database has only one connection and process.
  second =
    serverUrl === undefined
      ? { ...database, close: async () => {} }
      : await openDatabase({ ...database.place, connectionsMax: 4, log: quietLog })
  here = await startFileGateway(database)
  there = await startFileGateway(second, { folder: here.storageFolder })
})
afterAll(async () => {
  await here.stop()
  await there.stop()
  await second.close()
  await database.close()
})

const gateways = () => [here, there, here, there, here, there]

describe('concurrent use of one name', () => {
  test('one of several folders gets it, the others are refused', async () => {
    const json = { name: fresh('one'), folder_id: await here.folder(ann, fresh('folder')) }
    const responses = await Promise.all(
      gateways().map((gateway) => gateway.send(ann, '/v1/folders', { json })),
    )
    expect(responses.map(outcome).toSorted()).toEqual([
      '201',
      ...Array(5).fill('409 name_conflict'),
    ])
  })

  test('one of several uploads gets it; different names do not conflict', async () => {
    const folderId = await here.folder(ann, fresh('folder'))
    const upload = (onConflict: 'fail' | 'rename' | 'replace') =>
      Promise.allSettled(
        gateways().map((gateway) => gateway.upload(ann, 'same.txt', { folderId, onConflict })),
      )
    const done = (all: PromiseSettledResult<string>[]) =>
      all.filter(({ status }) => status === 'fulfilled').length
    expect(done(await upload('fail'))).toBe(1)
    expect(done(await upload('rename'))).toBe(6)
    expect(done(await upload('replace'))).toBe(6)
    const { body } = await here.send(ann, `/v1/files/children?folder_id=${folderId}`)
    const { data } = Object(body)
    expect(data.map(({ name }: { name: string }) => name).toSorted()).toEqual(
      ['', ' (2)', ' (3)', ' (4)', ' (5)', ' (6)', ' (7)']
        .map((mark) => `same${mark}.txt`)
        .toSorted(),
    )
    const replaced = data.find(({ name }: { name: string }) => name === 'same.txt')
    expect(replaced.version).toBe(7)
  })

  test('one of several moves gets it, the others have no effect', async () => {
    const to = await here.folder(ann, fresh('to'))
    const files = await Promise.all(
      gateways().map(async (gateway) => {
        const from = await gateway.folder(ann, fresh('from'))
        return gateway.upload(ann, 'moved', { folderId: from })
      }),
    )
    const responses = await Promise.all(
      files.map((id, at) =>
        (at % 2 === 0 ? here : there).send(ann, `/v1/files/${id}/move`, {
          json: { folder_id: to },
        }),
      ),
    )
    expect(responses.map(outcome).toSorted()).toEqual([
      '200',
      ...Array(5).fill('409 name_conflict'),
    ])
  })
})

test('one of two changes of the same version is refused', async () => {
  const id = await here.upload(ann, fresh('file'))
  const responses = await Promise.all(
    gateways().map((gateway, at) =>
      gateway.send(ann, `/v1/files/${id}`, {
        method: 'PATCH',
        headers: { 'if-match': '"1"' },
        json: { attributes: { [`by-${at}`]: true } },
      }),
    ),
  )
  const outcomes = responses.map(outcome).toSorted()
  expect(outcomes).toEqual(['200', ...Array(5).fill('412 precondition_failed')])
})

test('concurrent moves never create a cycle or lose a folder', async () => {
  const dice = createDice(7)
  const ids: string[] = []
  for (let folder = 0; folder < 8; folder++) ids.push(await here.folder(bob, fresh('cross')))
  const any = () => ids[dice.upTo(ids.length)] ?? ''
  for (let round = 0; round < 10; round++) {
    const moves = gateways().map((gateway) =>
      gateway.send(bob, `/v1/folders/${any()}/move`, {
        json: { folder_id: dice.upTo(5) === 0 ? null : any() },
      }),
    )
    const outcomes = new Set((await Promise.all(moves)).map(outcome))
    expect([...outcomes].filter((each) => !/^200$|^409 folder_cycle$/.test(each))).toEqual([])
    const rows = await database.drizzle.execute(sql`
      with recursive down (id) as (
        select id from node where owner_id = ${principalOf(bob).userId}::uuid and parent_id is null
        union all
        select child.id from down join node child on child.parent_id = down.id)
      select id from down`)
    expect(rows.length).toBe(ids.length)
  }
})

test('nodes added to a folder during its deletion or move share its fate or are refused', async () => {
  const team = await here.folder(ann, fresh('team'))
  await here.share(ann, `/v1/folders/${team}`, { type: 'user', subject: 'bob' }, 'editor')
  for (let round = 0; round < 6; round++) {
    const folder = await there.folder(bob, fresh('race'))
    const path = `/v1/folders/${folder}`
    const uploads = [1, 2, 3].map((at) =>
      (at % 2 === 0 ? here : there)
        .upload(bob, `file ${at}`, { folderId: folder })
        .catch((error) => `refused ${error.status}`),
    )
    const change =
      round % 2 === 0
        ? here.send(bob, `${path}?recursive=true`, { method: 'DELETE' })
        : here.send(bob, `${path}/move`, { json: { folder_id: team } })
    expect(outcome(await change)).toBe('200')
    const files = (await Promise.all(uploads)).filter((id) => !id.startsWith('refused'))
    const rows = await database.drizzle.execute<{ owner_id: string; live: boolean }>(sql`
      select distinct owner_id, trashed_at is null as live from node
      where id = ${folder}::uuid or parent_id = ${folder}::uuid`)
    expect(rows.length, 'one owner, one fate').toBe(1)
    expect(rows[0]?.live).toBe(round % 2 === 1)
    if (round % 2 === 1) expect(files.length).toBe(3)
  }
})

test('content that is swept during an upload is stored or refused', async () => {
  for (let round = 0; round < 5; round++) {
    const text = fresh('raced content')
    const id = await here.upload(ann, fresh('old'), { text })
    await here.send(ann, `/v1/files/${id}?permanent=true`, { method: 'DELETE' })
    for (const gateway of [here, there]) gateway.pass(2 * 3_600_000)
    const [filed] = await Promise.allSettled([
      there.upload(ann, fresh('new'), { text }),
      here.sweep(),
    ])
    const sha256 = new Bun.CryptoHasher('sha256').update(text).digest('hex')
    if (filed.status === 'rejected') expect(filed.reason).toMatchObject({ status: 503 })
    else expect(await here.storage.has(sha256)).toBe(true)
  }
})
