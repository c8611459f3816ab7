import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { toFile } from 'openai'
import { outcome } from '#test/support/file-gateway.ts'
import { ann, bob } from '../fixture.ts'
import { describeUploads, hashOf, rejection } from './fixture.ts'

const hourMs = 3_600_000

describeUploads('an upload', (uploading) => {
  test('parts that came in any order through two replicas are one file', async () => {
    const { gateway, replica, openUpload, sendPart } = uploading
    const pieces = [randomBytes(700_000), randomBytes(1), randomBytes(90_000)]
    const content = Buffer.concat([Buffer.from('%PDF-1.7\n%\xe2\xe3\n'), ...pieces])
    const cuts = [content.subarray(0, 500_000), content.subarray(500_000)]
    const opened = await openUpload(content, {
      expires_after: { anchor: 'created_at', seconds: 7_200 },
    })
    expect(opened).toMatchObject({ object: 'upload', status: 'pending', bytes: content.length })
    expect(opened).toMatchObject({ filename: 'Report.txt', purpose: 'assistants', file: null })
    expect(opened.expires_at - opened.created_at).toBe(3_600)
    const [second, first] = await Promise.all([
      sendPart(opened.id, cuts[1] ?? content, replica),
      sendPart(opened.id, cuts[0] ?? content),
    ])
    const done = await replica.openai(ann).uploads.complete(opened.id, {
      part_ids: [first, second],
      md5: hashOf('md5', content),
    })
    const { file } = done
    expect(done).toMatchObject({ id: opened.id, status: 'completed', bytes: content.length })
    expect(file).toMatchObject({ filename: 'Report.txt', object: 'file', purpose: 'assistants' })
    expect(Object(file)).toMatchObject({
      mime_type: 'application/pdf',
      sha256: hashOf('sha256', content),
      folder_id: null,
    })
    expect((file?.expires_at ?? 0) - (file?.created_at ?? 0)).toBeWithin(7_190, 7_210)
    const stored = await gateway.storage.read(hashOf('sha256', content))
    expect(content.equals(await new Response(stored).bytes())).toBe(true)
  })

  test('completing again returns the same file, also at the same time', async () => {
    const { database, gateway, replica, openUpload, sendPart, complete } = uploading
    const content = randomBytes(100)
    const { id } = await openUpload(content)
    const part = await sendPart(id, content)
    const both = await Promise.all(
      [gateway, replica].map((through) =>
        through.send(ann, `/v1/uploads/${id}/complete`, { json: { part_ids: [part] } }),
      ),
    )
    const made = both.filter(({ status }) => status === 200)
    expect(made.length).toBeGreaterThan(0)
    const again = await complete(id, [part])
    expect(again.body).toEqual(made[0]?.body ?? {})
    expect(Object(again.body['file']).sha256).toBe(hashOf('sha256', content))
    const [files] = await database.drizzle.execute<{ count: number }>(
      sql`select count(*)::integer as count from file where sha256 = ${hashOf('sha256', content)}`,
    )
    expect(files?.count).toBe(1)
    expect((await complete(id, [])).body).toMatchObject({
      error: { message: 'The upload is completed.' },
    })
  })

  test('parts that are not the whole file are refused, and the upload stays pending', async () => {
    const { openUpload, sendPart, complete } = uploading
    const content = randomBytes(200)
    const { id } = await openUpload(content)
    const part = await sendPart(id, content)
    const half = await sendPart(id, content.subarray(0, 100))
    const other = await openUpload(content)
    const ofOther = await sendPart(other.id, content)
    const refusals: [string[], object, string][] = [
      [[], {}, 'The parts have 0 bytes; the upload was created for 200.'],
      [[half], {}, 'The parts have 100 bytes; the upload was created for 200.'],
      [[part, half], {}, 'The parts have 300 bytes; the upload was created for 200.'],
      [[half, half], {}, 'A part is named twice.'],
      [[ofOther], {}, `The upload has no part with the id "${ofOther}".`],
      [['x'], {}, 'The upload has no part with the id "x".'],
      [
        [part],
        { md5: hashOf('md5', Buffer.from('x')) },
        `The file has the MD5 checksum ${hashOf('md5', content)}.`,
      ],
    ]
    for (const [parts, more, message] of refusals) {
      const response = await complete(id, parts, more)
      expect([response.status, response.body]).toMatchObject([
        400,
        { error: { code: 'invalid_request', message } },
      ])
    }
    expect(outcome(await complete(id, [part]))).toBe('200')
  })

  test('an ended upload takes no parts and does not end again', async () => {
    const { gateway, openUpload, sendPart, complete } = uploading
    const content = randomBytes(10)
    const cancelled = await openUpload(content)
    const part = await sendPart(cancelled.id, content)
    const client = gateway.openai(ann)
    expect(await client.uploads.cancel(cancelled.id)).toMatchObject({ status: 'cancelled' })
    expect(await client.uploads.cancel(cancelled.id)).toMatchObject({ status: 'cancelled' })
    const completed = await openUpload(content)
    await complete(completed.id, [await sendPart(completed.id, content)])
    for (const [{ id }, status] of [
      [cancelled, 'cancelled'],
      [completed, 'completed'],
    ] as const) {
      const refused = { status: 400, error: { message: `The upload is ${status}.` } }
      expect(await rejection(sendPart(id, content))).toMatchObject(refused)
      expect((await complete(id, [part])).body).toMatchObject({ error: refused.error })
    }
    expect(await rejection(client.uploads.cancel(completed.id))).toMatchObject({
      status: 400,
      error: { message: 'The upload is completed.' },
    })
  })

  test('exists for its owner only', async () => {
    const { gateway, openUpload, sendPart, complete } = uploading
    const content = randomBytes(10)
    const { id } = await openUpload(content)
    const part = await sendPart(id, content)
    const client = gateway.openai(bob)
    const data = await toFile(content, 'part')
    for (const request of [
      () => client.uploads.parts.create(id, { data }),
      () => client.uploads.complete(id, { part_ids: [part] }),
      () => client.uploads.cancel(id),
      () => client.uploads.cancel('no-id'),
    ]) {
      expect(await rejection(request())).toMatchObject({
        status: 404,
        error: { code: 'not_found' },
      })
    }
    expect(outcome(await complete(id, [part]))).toBe('200')
  })

  test('an expired upload is refused, and later gone with its contents', async () => {
    const { gateway, openUpload, sendPart, complete, isStored } = uploading
    const content = randomBytes(50)
    const { id } = await openUpload(content)
    const part = await sendPart(id, content)
    gateway.pass(hourMs + 60_000)
    const expired = { status: 400, error: { message: 'The upload is expired.' } }
    const client = gateway.openai(ann)
    expect(await rejection(sendPart(id, content))).toMatchObject(expired)
    expect((await complete(id, [part])).body).toMatchObject({ error: expired.error })
    expect(await rejection(client.uploads.cancel(id))).toMatchObject(expired)
    // A completion that began in time may still read its parts.
    await gateway.sweep()
    expect(await isStored(content)).toBe(true)
    gateway.pass(hourMs)
    await gateway.sweep()
    expect(await isStored(content)).toBe(false)
    expect(outcome(await complete(id, [part]))).toBe('404 not_found')
  })

  test('nothing is left of a cancelled upload, and only the file of a completed one', async () => {
    const { gateway, openUpload, sendPart, complete, isStored } = uploading
    const halves = [randomBytes(40), randomBytes(40)] as const
    const whole = Buffer.concat(halves)
    const dropped = randomBytes(30)
    const cancelled = await openUpload(dropped)
    await sendPart(cancelled.id, dropped)
    await gateway.openai(ann).uploads.cancel(cancelled.id)
    const completed = await openUpload(whole)
    const parts = [await sendPart(completed.id, halves[0]), await sendPart(completed.id, halves[1])]
    expect(outcome(await complete(completed.id, parts))).toBe('200')
    gateway.pass(hourMs + 60_000)
    await gateway.sweep()
    expect(await Promise.all([dropped, ...halves, whole].map(isStored))).toEqual([
      false,
      false,
      false,
      true,
    ])
  })
})
