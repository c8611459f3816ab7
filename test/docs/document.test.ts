import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Value } from '@sinclair/typebox/value'
import { listEndpoints } from '#app.ts'
import { permissionNames } from '#auth/permissions.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { findSchemaFault } from '#lib/json-schema.ts'
import { type ApiDocument, type Operation, readApiDocument } from '#test/support/api-document.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** The OpenAPI document, compared with the application and checked for consistency. */

let gateway: Gateway
let document: ApiDocument

beforeAll(async () => {
  gateway = await startGateway()
  document = await readApiDocument(gateway)
})
afterAll(() => gateway.stop())

/** The operations that violate a rule. */
function placesWhere(isWrong: (operation: Operation) => boolean): string[] {
  return document.operations.filter(isWrong).map(({ place }) => place)
}

test('it is valid by the published schema of OpenAPI 3.1', async () => {
  expect(document.whole['openapi']).toBe('3.1.0')
  const { valid, errors } = await new Validator().validate(structuredClone(document.whole))
  expect(errors ?? []).toEqual([])
  expect(valid).toBe(true)
})

test('it lists every route of the application, and nothing else', () => {
  const routes = listEndpoints(gateway.deps).map(({ method, path }) => {
    return `${method} ${path.replace(/(?<=.)\/$/, '').replace(/:\w+|\*/g, '{}')}`
  })
  const listed = document.operations.map(({ place }) => place.replace(/\{\w+\}/g, '{}'))
  expect(listed.toSorted()).toEqual(routes.toSorted())
})

test.each([
  // Of the platform's interface.
  ...['GET /v1/models', 'POST /v1/responses', 'POST /v1/api-keys', 'GET /v1/stt'],
  ...['POST /v1/collections/{name}/search', 'GET /v1/files/children', 'GET /v1/files/search'],
  'GET /v1/model-installer/downloads',
  'GET /v1/model-installer/downloads/{download_id}/logs',
  ...['GET /v1/config', 'PATCH /v1/config', 'GET /v1/translations'],
  ...['PATCH /v1/translations/{language}', 'POST /v1/translations/reset'],
  ...['GET /v1/branding/theme', 'PUT /v1/branding/theme', 'POST /v1/branding/theme/preview'],
  ...['POST /v1/branding/theme/reset', 'GET /v1/branding/logo', 'POST /v1/branding/logo'],
  ...['POST /compat/v1/messages', 'POST /compat/v1/messages/count_tokens'],
  ...['GET /compat/v1/models', 'GET /docs', 'GET /scalar'],
  // Of the protocols that clients know.
  'GET /v1/responses/{response_id}/input_items',
  'GET /v1/conversations/{conversation_id}/items/{item_id}',
  'GET /v1/vector_stores/{vector_store_id}/files/{file_id}',
  'GET /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files',
  'GET /v1/files/{file_id}/content',
])('it has %s, with the published names of parameters', (place) => {
  expect(document.operations.map((operation) => operation.place)).toContain(place)
})

describe('every operation', () => {
  test('has one tag, which the document describes', () => {
    const tags = new Set((document.whole['tags'] as { name: string }[]).map(({ name }) => name))
    const isWrong = ({ said }: Operation) => {
      const [tag, ...others] = Array.isArray(said['tags']) ? said['tags'] : []
      return !tags.has(tag) || others.length > 0
    }
    expect(placesWhere(isWrong)).toEqual([])
  })

  test('has a summary of a few words without a full stop, and a description', () => {
    const isWrong = ({ said: { summary, description } }: Operation) =>
      !/^[A-Z].{2,78}[^.\s]$/.test(String(summary)) || !description
    expect(placesWhere(isWrong)).toEqual([])
  })

  test('has its own operation id', () => {
    const names = document.operations.map(({ said }) => String(said['operationId']))
    expect(names.filter((name) => !/^[a-z][A-Za-z0-9]+$/.test(name))).toEqual([])
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  })

  test('requires a permission and accepts both credentials, or is public', () => {
    const isWrong = ({ said }: Operation) => {
      const { 'x-permission': permission, security } = said
      if (permission === undefined) {
        const isFree = String(said['description']).endsWith('Open to everyone.')
        return !Bun.deepEquals(security, isFree ? [] : [{}, { bearer: [] }])
      }
      const ways = JSON.stringify(security)
      return (
        !permissionNames.some((name) => name === permission) ||
        !String(said['description']).includes(`\`${permission}\``) ||
        !ways.endsWith('{"bearer":[]},{"apiKey":[]}]')
      )
    }
    expect(placesWhere(isWrong)).toEqual([])
  })

  test('describes its success, and the refusals without a credential or permission', () => {
    const isWrong = ({ said }: Operation) => {
      const statuses = Object.keys(asRecord(said['responses']))
      const isClosed = said['x-permission'] !== undefined
      const succeeds = statuses.some((status) => /^(101|2\d\d|302)$/.test(status))
      return !succeeds || (isClosed && !(statuses.includes('401') && statuses.includes('403')))
    }
    expect(placesWhere(isWrong)).toEqual([])
  })

  test('describes each parameter of its path, and no other', () => {
    const isWrong = ({ path, said }: Operation) => {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const described = parametersOf(said, 'path').filter(({ description }) => description)
      return !Bun.deepEquals(described.map(({ name }) => name).toSorted(), named.toSorted())
    }
    expect(placesWhere(isWrong)).toEqual([])
  })
})

test('WebSocket routes are marked and accept a token in the query', () => {
  const isSocket = ({ said }: Operation) => said['x-websocket'] === true
  expect(placesWhere(isSocket).toSorted()).toEqual([
    'GET /v1/listen',
    'GET /v1/realtime',
    'GET /v1/responses',
    'GET /v1/stt',
  ])
  for (const { said } of document.operations.filter(isSocket)) {
    expect(Object.keys(asRecord(said['responses']))).toContain('101')
    expect(said['security']).toContainEqual({ token: [] })
  }
})

test('every JSON body and response has a schema and examples that match it', () => {
  const faults = document.operations.flatMap(({ place, said }) =>
    contentsOf(said).flatMap(({ where, type, content }) => {
      if (!/^application\/(\w+\+)?json$/.test(type)) return []
      const examples = examplesOf(content)
      if (content['schema'] === undefined) return [`${place} ${where}: no schema`]
      // Those of a socket stand in descriptions.
      if (said['x-websocket'] === true && /^(101|default)/.test(where)) return []
      if (examples.length === 0) return [`${place} ${where}: no example`]
      return examples.flatMap((example) =>
        document
          .faultsOf(content['schema'], example)
          .map((fault) => `${place} ${where}: the example has a fault at ${fault}`),
      )
    }),
  )
  expect(faults).toEqual([])
})

test('the examples of streams and sockets match their schemas', () => {
  const examples = listEndpoints(gateway.deps).flatMap(({ method, path, responses }) =>
    Object.entries(responses).flatMap(([status, { content = {} }]) =>
      Object.entries(content).flatMap(([type, { schema, example }]) => {
        const isStream = type === 'text/event-stream'
        if (schema === undefined || example === undefined || !(isStream || status === '101'))
          return []
        const values = isStream
          ? [...String(example).matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) =>
              JSON.parse(data),
            )
          : [example]
        return values.map((value) => ({
          place: `${method} ${path}`,
          isValid: Value.Check(schema, value),
        }))
      }),
    ),
  )
  expect(examples.length).toBeGreaterThan(0)
  expect(examples.filter(({ isValid }) => !isValid)).toEqual([])
})

test('every error has the shape of its surface', () => {
  const faults = document.operations.flatMap(({ path, place, said }) =>
    contentsOf(said)
      .filter(({ where, content }) => /^[45]/.test(where) && !isProbe(path, content))
      // The shape of OAuth (RFC 6749, 5.2), which its clients read.
      .filter(({ where }) => !(path === '/login/device/token' && /^40[01]/.test(where)))
      .filter(({ content }) => {
        const own = path === '/v1/listen' ? 'ListenError' : 'Error'
        const name = path.startsWith('/compat') ? 'MessagesError' : own
        return asRecord(content['schema'])['$ref'] !== `#/components/schemas/${name}`
      })
      .map(({ where }) => `${place} ${where}`),
  )
  expect(faults).toEqual([])
})

test('every default is valid for its parameter', () => {
  const faults = document.operations.flatMap(({ place, said }) =>
    [...parametersOf(said, 'query'), ...parametersOf(said, 'header')].flatMap(
      ({ name, schema }) => {
        const { default: value } = asRecord(schema)
        if (value === undefined) return []
        return document.faultsOf(schema, value).map((fault) => `${place} ${name}: ${fault}`)
      },
    ),
  )
  expect(faults).toEqual([])
})

test('every shared schema has a valid identifier as its name', () => {
  const schemas = Object.entries(asRecord(asRecord(document.whole['components'])['schemas']))
  expect(schemas.length).toBeGreaterThan(20)
  expect(schemas.filter(([name]) => !/^[A-Z][A-Za-z0-9]{2,}$/.test(name))).toEqual([])
  expect(schemas.filter(([, schema]) => findSchemaFault(schema) !== null)).toEqual([])
})

test('documented refusals match real ones', async () => {
  const unknown = await fetch(`${gateway.url}/v1/models`)
  expect(examplesAt('Unauthorized')).toContainEqual(await unknown.json())
  const wrongKey = await gateway.request('/v1/models', { headers: { 'x-api-key': 'sk-svc-v1-x' } })
  expect(examplesAt('Unauthorized')).toContainEqual(await wrongKey.json())
  const stranger = { authorization: `Bearer ${await gateway.token(['strangers'], 'a-stranger')}` }
  const refused = await gateway.request('/v1/models', { headers: stranger })
  expect(examplesAt('Forbidden')).toContainEqual(await refused.json())
  const refusedMessages = await gateway.request('/compat/v1/models', { headers: stranger })
  const { request_id: _, ...error } = asRecord(await refusedMessages.json())
  expect(examplesAt('MessagesForbidden')).toContainEqual(expect.objectContaining(error))
})

function examplesAt(name: string): unknown[] {
  const answer = asRecord(asRecord(asRecord(document.whole['components'])['responses'])[name])
  return examplesOf(asRecord(asRecord(answer['content'])['application/json']))
}

/** A probe that reports draining by its status has its own body. */
function isProbe(path: string, content: JsonObject): boolean {
  return path === '/readyz' && asRecord(content['example'])['status'] === 'draining'
}

function parametersOf({ parameters }: JsonObject, place: string): JsonObject[] {
  const all = Array.isArray(parameters) ? parameters.map(asRecord) : []
  return all.filter((parameter) => parameter['in'] === place)
}

/** The request body as `body`, and the response bodies by status. */
function contentsOf(said: JsonObject) {
  const bodies: [string, unknown][] = [
    ['body', said['requestBody']],
    ...Object.entries(asRecord(said['responses'])),
  ]
  return bodies.flatMap(([where, body]) =>
    Object.entries(asRecord(asRecord(body)['content'])).map(([type, content]) => ({
      where,
      type,
      content: asRecord(content),
    })),
  )
}

function examplesOf({ example, examples }: JsonObject): unknown[] {
  const named = Object.values(asRecord(examples)).map((one) => asRecord(one)['value'])
  return example === undefined ? named : [example, ...named]
}
