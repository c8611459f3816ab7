import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { upload } from '#db/schema/files.ts'
import { partBytesMax } from '#files/uploads/schema.ts'
import {
  type FileGateway,
  outcome,
  principalOf,
  startFileGateway,
} from '#test/support/file-gateway.ts'
import { ann, cy } from '../fixture.ts'
import { bytesMax, describeUploads, rejection } from './fixture.ts'

const hourMs = 3_600_000

describeUploads('an upload', (uploading) => {
  test('parts and their sum are limited like files', async () => {
    const { openUpload, sendPart, post } = uploading
    const small = randomBytes(10)
    expect(outcome(await post('', { ...fieldsOf(small), bytes: bytesMax + 1 }))).toBe(
      '413 file_too_large',
    )
    const { id } = await openUpload(small)
    const tooLong = await rejection(sendPart(id, Buffer.alloc(bytesMax + 1)))
    expect(tooLong).toMatchObject({ status: 413, code: 'file_too_large' })
    await sendPart(id, Buffer.alloc(bytesMax - 5))
    const tooMuch = await rejection(sendPart(id, small))
    expect(tooMuch).toMatchObject({ status: 413, code: 'file_too_large' })
    await sendPart(id, small.subarray(0, 5))
  })

  test('a part has at most 64 MB where files may have more', async () => {
    const { database, gateway, openUpload, sendPart } = uploading
    const roomy = await startFileGateway(database, { folder: gateway.storageFolder })
    const { id } = await openUpload(randomBytes(10))
    const tooLong = Buffer.alloc(partBytesMax + 1)
    expect(await rejection(sendPart(id, tooLong, roomy))).toMatchObject({
      status: 413,
      code: 'file_too_large',
    })
    expect(await partsOf(database, id)).toBe(0)
    await roomy.stop()
  })

  test('a part that breaks off leaves nothing behind', async () => {
    const { database, gateway, openUpload, isStored } = uploading
    const { id } = await openUpload(randomBytes(10))
    const broken = await sendForm(
      gateway,
      id,
      '--cut\r\ncontent-disposition: form-data; name="data"; filename="x"\r\n\r\nhalf',
    )
    expect(broken).toMatchObject({ status: 400 })
    expect(await partsOf(database, id)).toBe(0)
    expect(await isStored(Buffer.from('half'))).toBe(false)
  })

  test('a form with other fields, or another body, is refused', async () => {
    const { database, gateway, openUpload, post } = uploading
    const { id } = await openUpload(randomBytes(10))
    const field = (name: string, more = '') =>
      `--cut\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\nx\r\n`
    const file = '; filename="x"'
    for (const [form, expected] of [
      [field('file', file), '422 unknown_field'],
      [field('colour'), '422 unprocessable'],
      [field('data', file) + field('colour'), '422 unknown_field'],
    ] as const) {
      expect(outcome(await sendForm(gateway, id, `${form}--cut--\r\n`))).toBe(expected)
    }
    expect(outcome(await post(`/${id}/parts`, {}))).toBe('400 invalid_request')
    expect(await partsOf(database, id)).toBe(0)
  })

  test('a file that its owner may not create leaves the upload pending', async () => {
    const { gateway, startReplica, openUpload, sendPart, complete } = uploading
    const tight = await startReplica(1)
    await gateway.upload(ann, 'the only one')
    const content = randomBytes(20)
    const { id } = await openUpload(content)
    const part = await sendPart(id, content)
    const json = { part_ids: [part] }
    const refused = await tight.send(ann, `/v1/uploads/${id}/complete`, { json })
    expect(outcome(refused)).toBe('422 too_many_files')
    await tight.stop()
    expect(outcome(await complete(id, [part]))).toBe('200')
  })

  test('a field that is not valid is named', async () => {
    const { post } = uploading
    const valid = fieldsOf(randomBytes(10))
    for (const [fields, expected, param] of [
      [{ filename: 'a/b' }, '422 invalid_name', 'filename'],
      [{ filename: '' }, '422 invalid_name', 'filename'],
      [{ purpose: 'no purpose' }, '422 unprocessable', 'purpose'],
      [{ bytes: -1 }, '422 unprocessable', 'bytes'],
      [{ bytes: 1.5 }, '422 unprocessable', 'bytes'],
      [{ mime_type: undefined }, '422 unprocessable', 'mime_type'],
      [{ colour: 'red' }, '422 unknown_field', 'colour'],
      [
        { expires_after: { anchor: 'created_at', seconds: 3_599 } },
        '422 unprocessable',
        'expires_after.seconds',
      ],
      [
        { expires_after: { anchor: 'last_active_at', seconds: 3_600 } },
        '422 unprocessable',
        'expires_after.anchor',
      ],
    ] as const) {
      const response = await post('', { ...valid, ...fields })
      expect([outcome(response), Object(response.body['error']).param]).toEqual([expected, param])
    }
  })

  test('a user has at most 1,000 pending uploads', async () => {
    const { database, post } = uploading
    const createdAt = new Date(Date.now() + 10 * hourMs)
    const row = {
      ownerId: principalOf(cy).userId,
      status: 'pending' as const,
      filename: 'x',
      purpose: 'user_data',
      bytes: 1,
      createdAt,
      expiresAt: new Date(createdAt.getTime() + hourMs),
    }
    const rows = (count: number, more: object = {}) =>
      Array.from({ length: count }, () => ({ ...row, id: Bun.randomUUIDv7(), ...more }))
    await database.drizzle.insert(upload).values(rows(999))
    await database.drizzle.insert(upload).values(rows(5, { status: 'cancelled' }))
    await database.drizzle.insert(upload).values(rows(5, { expiresAt: new Date(0) }))
    expect(outcome(await post('', fieldsOf(randomBytes(1)), cy))).toBe('200')
    expect(outcome(await post('', fieldsOf(randomBytes(1)), cy))).toBe('429 rate_limit_exceeded')
  })

  test('an empty file has no parts', async () => {
    const { openUpload, complete } = uploading
    const { id } = await openUpload(Buffer.alloc(0))
    expect((await complete(id, [])).body).toMatchObject({
      status: 'completed',
      file: { bytes: 0 },
    })
  })
})

async function partsOf(database: Database, id: string): Promise<number> {
  const rows = await database.drizzle.execute(
    sql`select 1 from upload_part where upload_id = ${id}::uuid`,
  )
  return rows.length
}

function sendForm(gateway: FileGateway, id: string, body: string) {
  return gateway.send(ann, `/v1/uploads/${id}/parts`, {
    json: body,
    headers: { 'content-type': 'multipart/form-data; boundary=cut' },
  })
}

function fieldsOf(content: Buffer) {
  const bytes = content.length
  return { filename: 'Report.txt', purpose: 'assistants', bytes, mime_type: 'text/plain' }
}
