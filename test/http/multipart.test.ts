import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { readMultipart } from '#http/multipart.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { createDice } from '#test/support/dice.ts'

const limits = { fieldsMax: 8, fieldBytesMax: 1_024, filesMax: 2, gapMs: 500, totalMs: 60_000 }

/** What was parsed, or the error code. */
let server: Bun.Server<unknown>

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    async fetch(request) {
      try {
        const form = await readMultipart(request, limits, takeAll)
        return Response.json({ fields: Object.fromEntries(form.fields), files: form.files })
      } catch (error) {
        const { kind, message } = toAppError(error)
        return Response.json({ kind, message }, { status: 400 })
      }
    },
  })
})
afterAll(() => server.stop(true))

test('fields and files of a form arrive byte for byte', async () => {
  const content = randomBytes(300_000)
  const form = new FormData()
  form.set('purpose', 'assistants')
  form.set('file', new File([content], 'ärger & co.pdf', { type: 'application/pdf' }))
  form.set('after', 'ü')
  const answer = await post(form)
  expect(answer).toEqual({
    fields: { purpose: 'assistants', after: 'ü' },
    files: [
      {
        part: { field: 'file', filename: 'ärger & co.pdf', mimeType: 'application/pdf' },
        taken: hashOf(content),
      },
    ],
  })
})

test('a form is parsed the same however its bytes are split', async () => {
  const boundary = 'x--boundary'
  const content = `line\r\n--x--bound not quite\r\n--x\r`
  const body = Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n` +
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="f.txt"\r\n\r\n` +
      `${content}\r\n--${boundary}--\r\n`,
  )
  for (let cut = 1; cut < body.length; cut++) {
    const pieces = [body.subarray(0, cut), body.subarray(cut)]
    const form = await readMultipart(requestOf(pieces, boundary), limits, takeAll)
    expect(form.files[0]?.taken).toBe(hashOf(Buffer.from(content)))
    expect(form.fields.get('a')).toBe('1')
  }
})

test('a truncated form is refused, wherever it ends', async () => {
  const boundary = 'b'
  const body = Buffer.from(
    `--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nabc\r\n--b--`,
  )
  for (let end = 1; end < body.length - 2; end++) {
    const outcome = readMultipart(requestOf([body.subarray(0, end)], boundary), limits, takeAll)
    expect(
      await outcome.then(
        () => 'taken',
        (error) => toAppError(error).kind,
      ),
    ).toBe('invalid_request')
  }
})

test('too many or too long fields and too many files are refused', async () => {
  const fields = new FormData()
  for (let at = 0; at <= limits.fieldsMax; at++) fields.append(`f${at}`, 'x')
  expect(await post(fields)).toMatchObject({ kind: 'request_too_large' })

  const long = new FormData()
  long.set('a', 'x'.repeat(limits.fieldBytesMax + 1))
  expect(await post(long)).toMatchObject({ kind: 'request_too_large' })

  const files = new FormData()
  for (let at = 0; at <= limits.filesMax; at++) files.append('file', new File(['x'], `${at}`))
  expect(await post(files)).toMatchObject({ kind: 'request_too_large' })
})

test('a body that is not a form is refused', async () => {
  const json = await fetch(server.url, { method: 'POST', body: '{}' })
  expect(await json.json()).toMatchObject({ kind: 'invalid_request' })
  const noBoundary = await fetch(server.url, {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data' },
    body: 'x',
  })
  expect(await noBoundary.json()).toMatchObject({ kind: 'invalid_request' })
})

test('an error of the consumer ends the upload with that error', async () => {
  const form = new FormData()
  form.set('file', new File([randomBytes(2_000_000)], 'fail'))
  expect(await post(form)).toMatchObject({ kind: 'insufficient_storage' })
})

test('every value of a repeated name arrives, in order', async () => {
  const body = ['1', '', '2']
    .map((value) => `--b\r\nContent-Disposition: form-data; name="a[]"\r\n\r\n${value}\r\n`)
    .join('')
  const form = await readMultipart(requestOf([Buffer.from(`${body}--b--`)], 'b'), limits, takeAll)
  expect(form.values).toEqual(new Map([['a[]', ['1', '', '2']]]))
})

test.each(['', 'Content-Disposition: form-data; name="file"; filename="f"\r\n\r\nabc'])(
  'a stalled upload is aborted, also in the middle of a file: %j',
  async (begun) => {
    const socket = connect(Number(server.port), '127.0.0.1')
    socket.write(
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n' +
        `Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n${begun}`,
    )
    const answer = await new Promise<string>((resolve) =>
      socket.once('data', (data) => resolve(`${data}`)),
    )
    socket.destroy()
    expect(answer).toContain('request_timeout')
  },
)

async function takeAll(part: { filename: string | null }, bytes: AsyncIterable<Uint8Array>) {
  const hasher = new Bun.CryptoHasher('sha256')
  for await (const chunk of bytes) {
    if (part.filename === 'fail') throw new AppError('insufficient_storage', 'The disk is full.')
    hasher.update(chunk)
  }
  return hasher.digest('hex')
}

async function post(form: FormData): Promise<unknown> {
  const answer = await fetch(server.url, { method: 'POST', body: form })
  return answer.json()
}

function requestOf(pieces: readonly Uint8Array[], boundary: string): Request {
  const body = new ReadableStream({
    start(controller) {
      for (const piece of pieces) if (piece.length > 0) controller.enqueue(piece)
      controller.close()
    },
  })
  const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }
  return new Request('http://x/', { method: 'POST', headers, body })
}

function randomBytes(length: number): Uint8Array<ArrayBuffer> {
  const dice = createDice(7)
  return Uint8Array.from({ length }, () => dice.upTo(256))
}

function hashOf(bytes: Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
}
