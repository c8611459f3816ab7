import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { wavFile } from '#test/speech/decoders/wav-builder.ts'
import { stopProcesses } from '#test/support/process.ts'
import { type Replica, startReplicas } from '#test/support/rights-gateways.ts'
import { openSocket } from '#test/support/socket-client.ts'
import { type Credential, makeCredentials, names, staff } from './rights-credentials.ts'

/**
 * Every endpoint of the API document, with every kind of credential and model, at two processes: keys
 * are made and changed at one, and used at both.
 */

let here: Replica
let there: Replica
let stop: () => Promise<void>
let credentials: ReadonlyMap<string, Credential>

function credentialNamed(name: string): Credential {
  const found = credentials.get(name)
  if (found === undefined) throw new Error(`there is no ${name}`)
  return found
}

/** An operation of the API document. */
type Operation = {
  readonly method: string
  readonly path: string
  readonly permission: unknown
  readonly scope: unknown
  /** Whether its body names a model. */
  readonly namesModel: boolean
}
let operations: Operation[]

async function readOperations(): Promise<Operation[]> {
  const { body: document } = await there.send(staff, 'GET /openapi.json')
  const schemas = asRecord(asRecord(document['components'])['schemas'])
  const hasModel = (schema: unknown): boolean => {
    const { $ref: reference, properties, anyOf } = asRecord(schema)
    if (typeof reference === 'string') return hasModel(schemas[reference.split('/').at(-1) ?? ''])
    if (Array.isArray(anyOf)) return anyOf.some(hasModel)
    return ['model', 'embedding_model'].some((field) => Object.hasOwn(asRecord(properties), field))
  }
  const paths = Object.entries(asRecord(document['paths']))
  return paths.flatMap(([path, item]) =>
    Object.entries(asRecord(item))
      .filter(([, operation]) => asRecord(operation)['x-permission'] !== undefined)
      .map(([method, operation]) => {
        const { requestBody, 'x-permission': permission, 'x-scope': scope } = asRecord(operation)
        const contents = Object.values(asRecord(asRecord(requestBody)['content']))
        const namesModel = contents.some((content) => hasModel(asRecord(content)['schema']))
        return { method: method.toUpperCase(), path, permission, scope, namesModel }
      }),
  )
}

const agents: Record<string, string> = {}

beforeAll(async () => {
  const replicas = await startReplicas()
  here = replicas.here
  there = replicas.there
  stop = replicas.stop
  operations = await readOperations()
  for (const model of ['open', 'restricted']) {
    const agent = { name: model, model, visibility: { kind: 'everyone' } }
    const { body } = await here.send(staff, 'POST /v1/agents', agent)
    agents[model] = String(body['model_id'])
  }
  credentials = await makeCredentials(here, there)
})
afterAll(async () => {
  await stopProcesses()
  await stop()
})

/** What a request without a body meets, that asks for nothing that exists. */
async function meet(replica: Replica, { method, path }: Operation, { bearer }: Credential) {
  const place = path.replace(/\{[^}]+\}/g, '0198a000-0000-7000-8000-000000000000')
  const { status, body } = await replica.send(bearer, `${method} ${place}`)
  if (status === 401) return 'unauthorised'
  if (status !== 403 || method === 'HEAD') return status === 403 ? 'refused' : 'allowed'
  const { code, details, message } = asRecord(body['error'])
  const known = code ?? asRecord(details)['error_code'] ?? body['err_code']
  return known === 'permission_denied' ? String(message ?? body['err_msg']) : 'allowed'
}

function expected({ method, permission, scope }: Operation, credential: Credential): string {
  if (!credential.isValid) return 'unauthorised'
  const refuse = (message: string) => (method === 'HEAD' ? 'refused' : message)
  if (typeof scope === 'string' && credential.scopes?.includes(scope) === false) {
    return refuse(`This API key lacks the scope ${scope}.`)
  }
  return permission === 'can_access_api' ? 'allowed' : refuse(`Missing permission: ${permission}.`)
}

test('the API document has every endpoint that names a model', () => {
  expect(operations.length).toBeGreaterThan(150)
  const naming = operations.filter(({ namesModel, permission }) => {
    return namesModel && permission === 'can_access_api'
  })
  const tested = [...Object.keys(requests), 'POST /v1/audio/translations']
  const named = naming.map(({ method, path }) => `${method} ${path}`)
  expect(named.filter((one) => !tested.includes(one))).toEqual(['PATCH /v1/agents/{agent_id}'])
})

describe('every endpoint admits', () => {
  test.each(names.map((name) => [name]))('%s as its rights allow', async (name) => {
    const credential = credentialNamed(name)
    const surprises: string[] = []
    for (const operation of operations) {
      const met = await meet(there, operation, credential)
      const wanted = expected(operation, credential)
      if (met !== wanted) surprises.push(`${operation.method} ${operation.path}: ${met}`)
    }
    expect(surprises).toEqual([])
  })
})

type Mode = 'generate' | 'base' | 'embed' | 'rerank' | 'transcribe' | 'speak'
type RequestOf = { readonly mode: Mode; readonly of: (model: string) => [string, unknown?] }

const message = { max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }
const post = (path: string, mode: Mode, body: (model: string) => unknown): [string, RequestOf] => [
  `POST ${path}`,
  { mode, of: (model) => [`POST ${path}`, body(model)] },
]
const get = (path: string): [string, RequestOf] => [
  `GET ${path}/{model}`,
  { mode: 'generate', of: (model) => [`GET ${path}/${model}`] },
]
let collections = 0

/** By operation. */
const requests: Readonly<Record<string, RequestOf>> = Object.fromEntries([
  post('/v1/responses', 'generate', (model) => ({ model, input: 'Hi', store: false })),
  post('/v1/responses/input_tokens', 'generate', (model) => ({ model, input: 'Hi' })),
  post('/v1/responses/compact', 'generate', (model) => ({ model, input: 'Hi' })),
  ...['/compat', '/compat/v1', '/compat/v1/v1'].flatMap((root) => [
    post(`${root}/messages`, 'generate', (model) => ({ model, ...message })),
    post(`${root}/messages/count_tokens`, 'generate', (model) => ({ model, ...message })),
    get(`${root}/models`),
  ]),
  get('/v1/models'),
  post('/v1/agents', 'base', (model) => ({ name: 'A', model })),
  post('/v1/embeddings', 'embed', (model) => ({ model, input: 'Hi' })),
  post('/v1/rerank', 'rerank', (model) => ({ model, query: 'Hi', documents: ['a'] })),
  post('/v1/audio/speech', 'speak', (model) => ({ model, input: 'Hi', voice: 'alloy' })),
  post('/v1/collections', 'embed', (model) => {
    collections += 1
    return { name: `c${collections}`, embedding_model: model }
  }),
  post('/v1/audio/transcriptions', 'transcribe', (model) => {
    const form = new FormData()
    form.set('model', model)
    form.set('file', new File([wavFile(new Uint8Array(3_200))], 'a.wav'))
    return form
  }),
])

type NamedModel = { readonly id: string; readonly forStaff: boolean; readonly isListed: boolean }

function modelsOf(mode: Mode): readonly NamedModel[] {
  const open = (id: string) => ({ id, forStaff: false, isListed: true })
  const suffix = { embed: '-embed', rerank: '-rerank', transcribe: '-speech', speak: '-voice' }
  if (mode !== 'generate' && mode !== 'base') {
    const restricted = { id: `restricted${suffix[mode]}`, forStaff: true, isListed: false }
    return [open(`open${suffix[mode]}`), restricted]
  }
  const models = [
    open('open'),
    open('listed-open'),
    { id: 'restricted', forStaff: true, isListed: false },
    { id: 'listed-secret', forStaff: true, isListed: true },
  ]
  if (mode === 'base') return models
  const secret = { id: agents['restricted'] ?? '', forStaff: true, isListed: false }
  return [...models, open(agents['open'] ?? ''), secret]
}

function mayUse({ isStaff, models }: Credential, { forStaff, isListed }: NamedModel): boolean {
  return (isStaff || !forStaff) && (models === null || isListed)
}

/** The status, and the code of an error in any of the shapes. */
function outcomeOf({ status, body }: { status: number; body: JsonObject }) {
  const { code, details, type } = asRecord(body['error'])
  return `${status} ${code ?? asRecord(details)['error_code'] ?? type ?? ''}`
}

describe('every endpoint that names a model knows those alone that the credential may use', () => {
  const rows = Object.keys(requests).flatMap((operation) =>
    names.map((name): [string, string] => [operation, name]),
  )
  test.each(rows)('%s with a %s', async (operation, name) => {
    const credential = credentialNamed(name)
    const { bearer, isValid, scopes } = credential
    const request = requests[operation]
    if (request === undefined) throw new Error(operation)
    const scope = operation.includes('/audio/')
      ? 'speech'
      : operation.includes('/collections')
        ? 'files'
        : 'inference'
    const refusal = !isValid ? 401 : scopes?.includes(scope) === false ? 403 : null
    for (const replica of [here, there]) {
      const absent = outcomeOf(await replica.send(bearer, ...request.of('absent')))
      if (refusal === null) expect(absent).toMatch(/^(404|422) (model_not_found|not_found)/)
      for (const model of modelsOf(request.mode)) {
        const met = outcomeOf(await replica.send(bearer, ...request.of(model.id)))
        if (refusal !== null) expect(met).toStartWith(String(refusal))
        else if (mayUse(credential, model)) expect(met, model.id).toMatch(/^20[01] /)
        else expect(met, model.id).toBe(absent)
      }
    }
  })
})

describe('every list has the models and agents that the credential may use', () => {
  const paths = ['/v1/models', '/v1/models?client_version=1', '/compat/v1/models?limit=1000']
  test.each(names.map((name) => [name]))('%s', async (name) => {
    const credential = credentialNamed(name)
    const isRefused = !credential.isValid || credential.scopes?.includes('inference') === false
    for (const path of paths) {
      const { status, text } = await there.send(credential.bearer, `GET ${path}`)
      expect(status === 200).toBe(!isRefused)
      for (const model of modelsOf('generate')) {
        const isShown = text.includes(`${model.id}"`)
        expect(isShown, `${path} ${model.id}`).toBe(!isRefused && mayUse(credential, model))
      }
    }
  })
})

describe('a WebSocket of responses knows the models that the credential may use', () => {
  test.each(names.map((name) => [name]))('%s', async (name) => {
    const credential = credentialNamed(name)
    const headers = { authorization: `Bearer ${credential.bearer}` }
    const socket = await openSocket(there.port(), { headers })
    const isRefused = !credential.isValid || credential.scopes?.includes('inference') === false
    expect(socket.head.includes('101')).toBe(!isRefused)
    if (isRefused) return
    for (const model of modelsOf('generate')) {
      const { response, failure } = await socket.turn({
        model: model.id,
        input: 'Hi',
        store: false,
      })
      const outcome = failure === undefined ? Object(response)['status'] : failure.code
      expect(outcome).toBe(mayUse(credential, model) ? 'completed' : 'model_not_found')
    }
    socket.socket.destroy()
  })
})
