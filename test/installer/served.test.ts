import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { lacksLlama, llamaPackage, quietSettings } from '#test/support/llama.ts'
import { type ModelOrigin, startModelOrigin } from '#test/support/model-origin.ts'
import { tinyGguf } from '#test/support/tiny-gguf.ts'

/** End to end: a model is installed by URL, listed, called and deleted. */

const letters = tinyGguf({ endBias: -50 })
const sha256 = new Bun.CryptoHasher('sha256').update(letters).digest('hex')

describe.skipIf(lacksLlama)('a model that is installed by its URL', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-served-'))
  let gateway: Gateway
  let origin: ModelOrigin

  beforeAll(async () => {
    origin = await startModelOrigin()
    gateway = await startGateway({
      environment: { SLUICE_MODELS: folder, SLUICE_LLAMA_PACKAGE: llamaPackage ?? '' },
      installer: { hosts: ['127.0.0.1'], ports: [], privateHosts: true },
      llama: { ...quietSettings, seed: 3 },
    })
  })
  afterAll(async () => {
    await gateway.stop()
    await origin.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const ask = async (method: string, path: string, body?: object): Promise<JsonObject> => {
    const authorization = `Bearer ${await gateway.token(['admins'], 'an-admin')}`
    const answer = await gateway.request(`/v1/model-installer${path}`, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { ...asRecord(await answer.json()), status_code: answer.status }
  }
  const listed = async () => {
    const { data } = await (await gateway.openai()).models.list()
    return data.some(({ id }) => id === 'letters')
  }

  test('is listed once it is complete', async () => {
    const model = origin.put('/letters.gguf', letters)
    const started = await ask('POST', '/downloads', { model, name: 'letters', sha256 })
    expect(started).toMatchObject({ status_code: 202, model: 'letters' })
    const id = String(started['download_id'])
    await eventually('the download is complete', async () => {
      const { status, error } = await ask('GET', `/downloads/${id}`)
      expect(error).toBe(null)
      return status === 'completed'
    })
    expect(await ask('GET', '/downloads')).toMatchObject({ data: [] })
    expect(await ask('GET', `/downloads/${id}/logs`)).toMatchObject({ data: [] })
    expect(await ask('GET', '/models')).toMatchObject({
      data: [{ name: 'letters', bytes: letters.length, verified: true }],
    })
    await eventually('it is listed', listed)
  })

  test('streams through /v1/responses', async () => {
    const client = await gateway.openai()
    const stream = client.responses.stream({
      model: 'letters',
      input: 'Say some letters.',
      max_output_tokens: 12,
    })
    let deltas = ''
    stream.on('response.output_text.delta', ({ delta }) => {
      deltas += delta
    })
    const response = await stream.finalResponse()
    expect(deltas.length).toBeGreaterThan(0)
    expect(response.output_text).toBe(deltas)
    expect(response.usage?.output_tokens).toBe(12)
  })

  test('streams through /compat', async () => {
    const client = new Anthropic({
      baseURL: `${gateway.url}/compat`,
      authToken: await gateway.token(),
      maxRetries: 0,
      fetch: checkedFetch,
    })
    const message = await client.messages
      .stream({
        model: 'vendor-model-letters',
        max_tokens: 8,
        messages: [{ role: 'user', content: 'Say some letters.' }],
      })
      .finalMessage()
    expect(message.stop_reason).toBe('max_tokens')
    expect(message.usage.output_tokens).toBe(8)
  })

  test('is not deleted while in use, and not listed after its deletion', async () => {
    const client = await gateway.openai()
    const stream = await client.responses.create({
      model: 'letters',
      input: 'Go on and on.',
      stream: true,
      store: false,
    })
    const events = stream[Symbol.asyncIterator]()
    await events.next()
    expect(await ask('DELETE', '/models/letters')).toMatchObject({
      status_code: 409,
      error: { code: 'model_in_use' },
    })
    stream.controller.abort()
    await eventually('it is no longer in use', async () => {
      const { status_code: status } = await ask('DELETE', '/models/letters')
      return status === 200
    })
    await eventually('it is no longer listed', async () => !(await listed()))
    const again = client.responses.create({ model: 'letters', input: 'Are you there?' })
    expect(await again.catch((error: unknown) => error)).toMatchObject({ status: 404 })
  })
})
