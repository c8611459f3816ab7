import { afterAll, beforeAll, expect, test } from 'bun:test'
import { request as sendRequest } from 'node:http'
import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { configFile, startGatewayProcess, stopProcesses } from '#test/support/process.ts'
import { makeKey, type Replica, tokenOf, withSend } from '#test/support/rights-gateways.ts'
import { openSocket } from '#test/support/socket-client.ts'
import { openSpeech } from '#test/support/speech-client.ts'

/** Address lists of API keys, with a proxy at 127.0.0.1 that is trusted and one at 127.0.0.2 that is not. */

let gateway: Replica

beforeAll(async () => {
  const config = configFile(
    'trusted_proxies = ["127.0.0.1"]\n[[engine]]\nname = "demo"\nkind = "demo"\n',
  )
  gateway = withSend(await startGatewayProcess({ environment: { SLUICE_CONFIG: config } }))
})
afterAll(stopProcesses)

const [proxy, stranger] = ['127.0.0.1', '127.0.0.2']
const [inside, outside] = ['192.0.2.7', '198.51.100.7']
const owner = () => tokenOf('ann', ['users'])
const admin = () => tokenOf('root', ['admins'])

type Sent = { readonly status: number; readonly body: JsonObject }

/** A request of a client over a proxy. */
function send(
  operation: string,
  {
    bearer,
    client,
    via = proxy,
    json,
  }: { bearer: string; client: string; via?: string; json?: object },
): Promise<Sent> {
  const [method, path] = operation.split(' ')
  return new Promise((resolve, reject) => {
    const sent = sendRequest({
      port: gateway.port(),
      host: '127.0.0.1',
      localAddress: via,
      method,
      path,
      agent: false,
      headers: {
        authorization: `Bearer ${bearer}`,
        'x-forwarded-for': client,
        'content-type': 'application/json',
      },
    })
    sent.on('response', (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('end', () => {
        const body = asRecord(parseJson(Buffer.concat(parts).toString()))
        resolve({ status: response.statusCode ?? 0, body })
      })
    })
    sent.on('error', reject)
    sent.end(json === undefined ? undefined : JSON.stringify(json))
  })
}

const refused = { status: 403, body: { error: { code: 'ip_not_allowed' } } }

test('a key works from its addresses only, and headers of untrusted peers are ignored', async () => {
  const { id, key } = await makeKey(gateway, owner(), {
    allowed_ips: ['192.0.2.0/24', '2001:db8::/32'],
  })
  const models = (client: string, via = proxy) =>
    send('GET /v1/models', { bearer: key, client, via })
  expect(await models(inside)).toMatchObject({ status: 200 })
  expect(await models(`1.1.1.1, ${inside}`)).toMatchObject({ status: 200 })
  expect(await models('::ffff:192.0.2.9')).toMatchObject({ status: 200 })
  expect(await models('2001:db8::9')).toMatchObject({ status: 200 })
  expect(await models(outside)).toMatchObject(refused)
  expect(await models(`${inside}, ${outside}`)).toMatchObject(refused)
  expect(await models('unknown')).toMatchObject(refused)
  expect(await models(inside, stranger)).toMatchObject({
    ...refused,
    body: { error: { message: 'This API key may not be used from the address 127.0.0.2.' } },
  })
  // A token of the owner has no such list.
  expect(await send('GET /v1/models', { bearer: owner(), client: outside })).toMatchObject({
    status: 200,
  })

  const json = { model: 'demo', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] }
  const message = await send('POST /compat/v1/messages', { bearer: key, client: outside, json })
  expect(message).toMatchObject({ status: 403, body: { error: { type: 'permission_error' } } })

  await gateway.send(owner(), `PATCH /v1/api-keys/${id}`, { allowed_ips: null })
  expect(await models(outside)).toMatchObject({ status: 200 })
})

test('WebSockets and live speech are refused from other addresses', async () => {
  const { key } = await makeKey(gateway, owner(), { allowed_ips: [inside] })
  const headers = (client: string) => ({
    authorization: `Bearer ${key}`,
    'x-forwarded-for': client,
  })
  const [allowed, other] = [headers(inside), headers(outside)]
  expect((await openSocket(gateway.port(), { headers: allowed })).head).toStartWith('HTTP/1.1 101')
  expect((await openSocket(gateway.port(), { headers: other })).head).toStartWith('HTTP/1.1 403')
  const speech = await openSpeech(gateway.port(), { headers: allowed })
  await speech.start()
  const refusal = await (await openSpeech(gateway.port(), { headers: other })).refusal()
  expect(refusal).toMatchObject({ code: 'permission_denied', closeCode: 1008 })
})

test('a changed list acts at once; administrators set it on keys of others; the audit log has it, and the address', async () => {
  const { id, key } = await makeKey(gateway, owner())
  const models = () => send('GET /v1/models', { bearer: key, client: outside })
  expect(await models()).toMatchObject({ status: 200 })
  const json = { allowed_ips: ['192.0.2.0/24'] }
  const changed = await send(`PATCH /v1/api-keys/${id}`, { bearer: admin(), client: inside, json })
  expect(changed).toMatchObject({ status: 200, body: json })
  expect(await models()).toMatchObject(refused)
  const { body } = await gateway.send(admin(), `GET /v1/audit-log?resource=api_key:${id}&limit=1`)
  expect(Object(body['data'])[0]).toMatchObject({
    action: 'api_key.update',
    actor: { ip_address: inside },
    changes: { before: { allowed_ips: null }, after: json },
  })
})

test.each<[unknown, string]>([
  [[], 'allowed_ips'],
  [['localhost'], 'allowed_ips[0]'],
  [['192.0.2.0/24', '192.0.2.1/24'], 'allowed_ips[1]'],
  [['::/129'], 'allowed_ips[0]'],
  ['192.0.2.0/24', 'allowed_ips'],
])('the list %j is refused', async (list, param) => {
  const json = { name: 'k', allowed_ips: list }
  const { status, body } = await gateway.send(owner(), 'POST /v1/api-keys', json)
  expect([status, Object(body['error']).param]).toEqual([422, param])
})
