import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import { asRecord } from '#lib/json.ts'
import { systemPrincipal } from '#lib/request-context.ts'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { endless, lacksLlama, llamaPackage, quietSettings } from '#test/support/llama.ts'
import { childrenOf, killProcess } from '#test/support/process.ts'
import { type TinyGguf, tinyGguf } from '#test/support/tiny-gguf.ts'

/** Installed models through the whole gateway, without configured upstreams. */

describe.skipIf(lacksLlama)('a gateway with installed models', () => {
  let gateway: Gateway
  const models = mkdtempSync(join(tmpdir(), 'sluice-models-'))
  beforeAll(async () => {
    install('house/endless', endless)
    install('brief', { endBias: 10 })
    gateway = await startGateway({
      environment: { SLUICE_MODELS: models, SLUICE_LLAMA_PACKAGE: llamaPackage ?? '' },
      llama: { ...quietSettings, sequencesMax: 2, contextTokensMax: 1_024, seed: 5 },
    })
    await gateway.deps.catalogue.asked()
  })
  afterAll(async () => {
    await gateway.stop()
    rmSync(models, { recursive: true, force: true })
  })

  /** As the installer leaves it. */
  function install(name: string, file: TinyGguf) {
    const folder = join(models, encodeURIComponent(name))
    mkdirSync(folder, { recursive: true })
    const bytes = tinyGguf(file)
    writeFileSync(join(folder, 'model.gguf'), bytes)
    const files = [{ path: 'model.gguf', bytes: bytes.length, sha256: '0'.repeat(64) }]
    const record = { name, source: 'test', revision: null, files, bytes: bytes.length }
    const about = { isVerified: true, installedAt: '2026-01-01T00:00:00.000Z' }
    writeFileSync(join(folder, 'model.json'), JSON.stringify({ ...record, ...about }))
  }
  const anthropic = async () => {
    const baseURL = `${gateway.url}/compat`
    const apiKey = await gateway.token()
    return new Anthropic({ baseURL, authToken: apiKey, maxRetries: 0, fetch: checkedFetch })
  }

  test('lists them beside the demo', async () => {
    const { data } = await (await gateway.openai()).models.list()
    const listed = data.find(({ id }) => id === 'house/endless')
    expect(listed).toMatchObject({ owned_by: 'local', context_window: 1_024, mode: 'generate' })
    expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining(['brief', 'demo']))
  })

  test('lists a new model after a refresh', async () => {
    install('late', { endBias: 10 })
    await gateway.deps.catalogue.refresh()
    expect(gateway.deps.catalogue.find(systemPrincipal, 'late')?.ownedBy).toBe('local')
  })

  test('streams one through the openai package', async () => {
    const client = await gateway.openai()
    const asked = { model: 'house/endless', input: 'Hello', max_output_tokens: 30 }
    const stream = await client.responses.create({ ...asked, stream: true })
    let text = ''
    let deltas = 0
    for await (const event of stream) {
      if (event.type === 'response.output_text.delta') {
        text += event.delta
        deltas++
      }
      if (event.type !== 'response.incomplete') continue
      expect(event.response.incomplete_details?.reason).toBe('max_output_tokens')
      expect(event.response.usage?.output_tokens).toBe(30)
    }
    expect(text).toHaveLength(30)
    expect(deltas).toBeGreaterThan(1)
    // The same seed yields the same output.
    const whole = await client.responses.create(asked)
    expect(whole.output_text).toBe(text)
  })

  test('streams one through the @anthropic-ai/sdk package', async () => {
    const client = await anthropic()
    const messages = [{ role: 'user' as const, content: 'Hello' }]
    const stream = client.messages.stream({ model: 'brief', max_tokens: 900, messages })
    const message = await stream.finalMessage()
    expect(message.stop_reason).toBe('end_turn')
    expect(message.usage.output_tokens).toBeGreaterThan(0)
    const counted = await client.messages.countTokens({ model: 'brief', messages })
    expect(counted.input_tokens).toBe(message.usage.input_tokens)
  })

  test('reports a model that crashes during a response, and recovers', async () => {
    const client = await gateway.openai()
    const asked = { model: 'house/endless', input: 'Hello', store: false }
    const stream = await client.responses.create({ ...asked, stream: true })
    const types: string[] = []
    const read = async () => {
      for await (const event of stream) {
        const isFirstDelta = event.type.endsWith('.delta') && !types.includes(event.type)
        if (isFirstDelta) for (const pid of childrenOf(process.pid)) killProcess(pid)
        types.push(event.type)
      }
    }
    const error = await read().catch((thrown: unknown) => thrown)
    expect(types).toContain('response.output_text.delta')
    expect(asRecord(error)).toMatchObject({ code: 'upstream_error' })
    expect(String(error)).toContain('exited before its response was complete')
    const next = await client.responses.create({ ...asked, max_output_tokens: 20 })
    expect(next.output_text).toHaveLength(20)
  })

  test('releases the slot of a disconnected client', async () => {
    const client = await gateway.openai()
    const stream = await client.responses.create({
      model: 'house/endless',
      input: 'Hello',
      store: false,
      stream: true,
    })
    for await (const event of stream) {
      if (event.type === 'response.output_text.delta') break
    }
    const { usesOfModel } = gateway.deps
    await eventually('it is free', async () => (await usesOfModel('house/endless')).length === 0)
  })

  test('rejects an image with the reason', async () => {
    const image = { type: 'input_image', image_url: 'data:image/png;base64,AA==' }
    const answer = await gateway.post('/v1/responses', {
      model: 'brief',
      input: [{ role: 'user', content: [image] }],
    })
    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain('reads only text')
  })
})
