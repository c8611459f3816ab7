import { afterAll, beforeAll, expect, test } from 'bun:test'
import { asRecord, parseJson } from '#lib/json.ts'
import { type ApiDocument, type Operation, readApiDocument } from '#test/support/api-document.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** Sends every example of the document unchanged, as "Execute" in /docs does, to a fresh gateway. */

let gateway: Gateway
let document: ApiDocument

beforeAll(async () => {
  // Nothing outside of this machine is asked.
  gateway = await startGateway({ installer: { hubUrl: 'http://127.0.0.1:9' } })
  document = await readApiDocument(gateway)
})
afterAll(() => gateway.stop())

/** Examples with an object that a fresh gateway does not have. */
const exceptions: Readonly<Record<string, number>> = {
  'POST /v1/rerank': 404,
  'POST /v1/audio/speech': 404,
  'POST /v1/batches': 404,
  // Its host does not exist.
  'POST /v1/webhook_endpoints': 400,
  'POST /v1/webhook_endpoints/{webhook_endpoint_id}': 404,
  'POST /v1/webhook_endpoints/{webhook_endpoint_id}/rotate_secret': 404,
  'POST /v1/webhook_endpoints/{webhook_endpoint_id}/test': 404,
  // It is for browsers, which send a header of their own.
  'POST /v1/session': 403,
  'POST /v1/device-logins/{code}': 404,
  'POST /v1/uploads/{upload_id}/complete': 400,
  'POST /v1/model-installer/downloads': 502,
  'POST /v1/collections/{name}/files': 404,
  'PATCH /v1/collections/{name}/files/{file_id}': 404,
  'POST /v1/vector_stores/{vector_store_id}/files': 404,
  'POST /v1/vector_stores/{vector_store_id}/files/{file_id}': 404,
  'POST /v1/vector_stores/{vector_store_id}/file_batches': 404,
}

test('every example of a request is accepted', async () => {
  const authorization = `Bearer ${await gateway.token(['admins'], 'example')}`
  const send = async (method: string, path: string, body: FormData | string | null) => {
    const type = typeof body === 'string' ? { 'content-type': 'application/json' } : {}
    const headers = { authorization, ...type }
    const httpResponse = await fetch(gateway.url + path, { method, headers, body })
    const text = await httpResponse.text()
    return { status: httpResponse.status, text, id: asRecord(parseJson(text))['id'] }
  }
  // By the path that creates them; the objects that paths of examples name.
  const made = new Map<string, string>([['/v1/translations', 'cs']])
  const form = new FormData()
  form.append('file', new File(['The harbour opens at six.'], 'a.txt', { type: 'text/plain' }))
  made.set('/v1/files', String((await send('POST', '/v1/files', form)).id))
  const faults: string[] = []
  const sent: string[] = []
  for (const { method, path, place, said } of document.operations.toSorted(creatorsFirst)) {
    const body = asRecord(asRecord(asRecord(said['requestBody'])['content'])['application/json'])
    if (body['example'] === undefined) continue
    const filled = path.replace(
      /\{\w+\}/g,
      (_, at: number) => made.get(path.slice(0, at - 1)) ?? 'none',
    )
    const { status, text, id } = await send(method, filled, JSON.stringify(body['example']))
    if (typeof id === 'string' && status < 300 && !made.has(path)) made.set(path, id)
    if (path === '/v1/service-accounts') made.set('/v1/users', String(id))
    const isDocumented = String(status) in asRecord(said['responses'])
    const isExpected = exceptions[place] === undefined ? status < 300 : exceptions[place] === status
    if (!isDocumented || !isExpected) faults.push(`${place} answered ${status}: ${text}`)
    sent.push(place)
  }
  expect(faults).toEqual([])
  expect(sent.length).toBeGreaterThan(50)
  expect(Object.keys(exceptions).filter((place) => !sent.includes(place))).toEqual([])
})

/** Short paths create what longer ones name. */
function creatorsFirst(a: Operation, b: Operation): number {
  const order = ({ method, path }: Operation) =>
    path.split('/').length * 2 + (method === 'POST' ? 0 : 1)
  return order(a) - order(b)
}
