import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { readApiDocument } from '#test/support/api-document.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** A generated client against the real gateway. */

type Called = { data?: unknown; error?: unknown; response: Response }
type Call = (options?: JsonObject) => Promise<Called>

const folder = mkdtempSync(join(tmpdir(), 'sluice-client-'))
let gateway: Gateway
let calls: Record<string, Call>
/** `type` of a security scheme: `http` or `apiKey`. */
let useCredential: (type: string, credential: string) => void

beforeAll(async () => {
  gateway = await startGateway()
  const { whole } = await readApiDocument(gateway)
  const document = join(folder, 'openapi.json')
  writeFileSync(document, JSON.stringify(whole))
  const program = new URL('../support/client-generator/program.ts', import.meta.url).pathname
  await run([process.execPath, program, document, join(folder, 'client')])
  calls = await import(join(folder, 'client', 'sdk.gen.ts'))
  const { client } = await import(join(folder, 'client', 'client.gen.ts'))
  useCredential = (type, credential) =>
    client.setConfig({
      baseUrl: gateway.url,
      auth: (scheme: { type: string }) => (scheme.type === type ? credential : undefined),
    })
})
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true })
})

async function run(command: string[]): Promise<void> {
  const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'pipe' })
  const output = (await child.stdout.text()) + (await child.stderr.text())
  expect(await child.exited, output).toBe(0)
}

/** Throws unless the call succeeds. */
async function call(name: string, options: JsonObject = {}): Promise<JsonObject> {
  const { data, error, response } = (await calls[name]?.(options)) ?? {}
  expect(error, `${name} answered ${response?.status}`).toBeUndefined()
  expect(response?.ok, name).toBe(true)
  return asRecord(data)
}

test('its types compile', async () => {
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    module: 'ESNext',
    moduleResolution: 'bundler',
    target: 'ESNext',
    lib: ['ESNext', 'DOM', 'DOM.Iterable'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  await run([process.execPath, 'x', 'tsc', '-p', folder])
})

describe('with an API key that it created', () => {
  beforeAll(async () => {
    useCredential('http', await gateway.token(['admins'], 'generated'))
    const { key } = await call('createApiKey', { body: { name: 'generated client' } })
    useCredential('apiKey', String(key))
  })

  test('it lists the models and shows one', async () => {
    const { data } = await call('listModels')
    expect(data).toContainEqual(expect.objectContaining({ id: 'demo' }))
    expect(await call('getModel', { path: { name: 'demo' } })).toMatchObject({ id: 'demo' })
    const listed = await call('listCompatModels')
    expect(JSON.stringify(listed)).toContain('demo')
  })

  test('it creates a response, and reads its caller and the groups', async () => {
    const response = await call('createResponse', {
      body: { model: 'demo', input: 'Say hello.', tool_choice: 'auto' },
    })
    expect(response).toMatchObject({ object: 'response', status: 'completed' })
    expect(await call('getMe')).toHaveProperty('id')
    expect(await call('listGroups')).toMatchObject({ object: 'list' })
  })

  test('it counts tokens on both surfaces', async () => {
    const input = await call('countResponseInputTokens', {
      body: { model: 'demo', input: 'one two three' },
    })
    expect(input['input_tokens']).toBeGreaterThan(0)
    const messages = await call('countCompatMessageTokens', {
      body: { model: 'demo', messages: [{ role: 'user', content: 'one two three' }] },
    })
    expect(messages['input_tokens']).toBeGreaterThan(0)
  })

  test('it creates, updates, lists and deletes an agent', async () => {
    const { id } = await call('createAgent', { body: { name: 'from the client', model: 'demo' } })
    const path = { agent_id: id }
    await call('updateAgent', { path, body: { description: 'changed' } })
    expect(await call('getAgent', { path })).toMatchObject({ description: 'changed' })
    const { data } = await call('listAgents', { query: { limit: 5 } })
    expect(data).toContainEqual(expect.objectContaining({ id }))
    expect(await call('deleteAgent', { path })).toMatchObject({ deleted: true })
  })

  test('it creates a conversation and a folder', async () => {
    const conversation = await call('createConversation', {
      body: { metadata: { from: 'client' } },
    })
    expect(conversation['object']).toBe('conversation')
    const { id } = await call('createFolder', { body: { name: 'from the client' } })
    expect(await call('getFolder', { path: { folder_id: id } })).toMatchObject({
      name: 'from the client',
    })
  })

  test('it reads the settings, the theme and the translations', async () => {
    expect(await call('getConfig')).toHaveProperty('retrieval_k')
    expect(await call('getBrandingTheme')).not.toEqual({})
    await call('listTranslations')
  })

  test('an error has the shape of its generated type', async () => {
    const failure = await calls['getModel']?.({ path: { name: 'no-such-model' } })
    expect(failure?.data).toBeUndefined()
    expect(failure?.error).toMatchObject({ error: { code: 'model_not_found' } })
  })
})
