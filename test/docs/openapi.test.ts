import { describe, expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, eventStream, json } from '#api/endpoint.ts'
import { makeDocument } from '#docs/openapi.ts'
import { inOrderOfReference, portableSchema } from '#docs/portable-schema.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'

/** The OpenAPI document of given endpoints. */

const tags = { Files: 'Files and folders.', Messages: 'The Messages API.' }
const thing = Type.Object({ name: Type.String() }, { $id: 'Thing' })
const responses = { 200: { description: 'It.', content: json(thing, { name: 'a' }) } }
type Parts = Partial<Pick<Endpoint, 'tag' | 'params' | 'responses' | 'errors' | 'permission'>>

function route(method: string, path: string, parts: Parts = {}): Endpoint {
  return {
    ...endpoint({
      method: 'GET',
      path,
      permission: 'public',
      tag: 'Files',
      summary: 'Read a thing',
      responses,
      handle: () => null,
    }),
    ...parts,
    method: method as Endpoint['method'],
  }
}

async function pathsOf(...routes: Endpoint[]): Promise<JsonObject> {
  return asRecord((await makeDocument(routes, tags))['paths'])
}

/** A path in nested objects: `get.responses.200`. */
function at(value: unknown, place: string): unknown {
  return place.split('.').reduce<unknown>((found, step) => asRecord(found)[step], value)
}

describe('schemas', () => {
  test('with a name appear once', async () => {
    const list = json(Type.Object({ data: Type.Array(thing) }), { data: [] })
    const document = await makeDocument(
      [
        route('GET', '/v1/things/:id'),
        route('GET', '/v1/things', {
          responses: { 200: { description: 'A', content: list } },
        }),
      ],
      tags,
    )
    const reference = { $ref: '#/components/schemas/Thing' }
    const content = 'get.responses.200.content.application/json.schema'
    const paths = asRecord(document['paths'])
    expect(at(paths['/v1/things/{thing_id}'], content)).toEqual(reference)
    expect(at(paths['/v1/things'], `${content}.properties.data.items`)).toEqual(reference)
    expect(at(document, 'components.schemas.Thing')).toEqual({
      type: 'object',
      required: ['name'],
      properties: { name: { type: 'string' } },
    })
  })

  test('that contain themselves refer to their name', async () => {
    const tree = Type.Recursive((self) => Type.Object({ children: Type.Array(self) }), {
      $id: 'Tree',
    })
    const content = json(tree, { children: [] })
    const document = await makeDocument(
      [route('GET', '/v1/tree', { responses: { 200: { description: 'A tree.', content } } })],
      tags,
    )
    expect(at(document, 'components.schemas.Tree.properties.children.items')).toEqual({
      $ref: '#/components/schemas/Tree',
    })
  })

  test('that differ may not share a name', async () => {
    const other = Type.Object({ size: Type.Integer() }, { $id: 'Thing' })
    const content = json(other, { size: 1 })
    const made = makeDocument(
      [
        route('GET', '/v1/things'),
        route('GET', '/v1/others', { responses: { 200: { description: 'B', content } } }),
      ],
      tags,
    )
    await expect(made).rejects.toThrow('Two different schemas have the $id "Thing".')
  })

  test('with examples keep them', async () => {
    const content = json(Type.Any(), { schema: { $id: 'Thing', type: 'string' } })
    const paths = await pathsOf(
      route('GET', '/v1/schema', { responses: { 200: { description: 'A.', content } } }),
    )
    const example = at(paths['/v1/schema'], 'get.responses.200.content.application/json.example')
    expect(example).toEqual({ schema: { $id: 'Thing', type: 'string' } })
  })
})

describe('paths', () => {
  test('have parameters in braces', async () => {
    const paths = await pathsOf(
      route('GET', '/'),
      route('GET', '/v1/things/'),
      route('GET', '/v1/things/:id/parts/:part_id'),
      route('GET', '/v1/models/*', { params: { '*': 'The name.' } }),
    )
    expect(Object.keys(paths)).toEqual([
      '/',
      '/v1/things',
      '/v1/things/{thing_id}/parts/{part_id}',
      '/v1/models/{name}',
    ])
    const [name] = at(paths['/v1/models/{name}'], 'get.parameters') as JsonObject[]
    expect(name).toMatchObject({ name: 'name', in: 'path', description: 'The name.' })
  })

  test.each([
    ['GET', '/v1/api-keys', 'listApiKeys'],
    ['POST', '/v1/api-keys/', 'createApiKey'],
    ['DELETE', '/v1/api-keys/:id', 'deleteApiKey'],
    ['PATCH', '/v1/files/:id/shares/:share_id', 'updateFileShare'],
    ['PUT', '/v1/files/:id/content', 'replaceFileContent'],
    ['HEAD', '/v1/files/:id/content', 'headFileContent'],
    ['POST', '/v1/responses/:id/cancel', 'cancelResponse'],
    ['POST', '/v1/conversations/:id', 'updateConversation'],
    ['GET', '/v1/files/:id/access', 'getFileAccess'],
    ['POST', '/v1/vector_stores/:id/file_batches', 'createVectorStoreFileBatch'],
    ['DELETE', '/v1/models/:name/:part', 'deleteModelPart'],
    ['POST', '/v1/models/:name/:part/verify', 'verifyModelPart'],
    ['GET', '/compat/v1/models', 'listCompatModels'],
    ['GET', '/compat/models', 'getCompatModels'],
    ['GET', '/livez', 'getLivez'],
    ['GET', '/', 'getRoot'],
  ])('%s %s has the operation id %s', async (method, path, name) => {
    const [operations] = Object.values(await pathsOf(route(method, path)))
    expect(at(operations, `${method.toLowerCase()}.operationId`)).toBe(name)
  })

  test('with duplicate operation ids are refused', async () => {
    const made = makeDocument([route('GET', '/v1/me/a-b'), route('GET', '/v1/me/a_b')], tags)
    await expect(made).rejects.toThrow('get /v1/me/a_b and get /v1/me/a-b are both getMeAB.')
  })
})

test('a tag that no module declares is refused', async () => {
  const made = makeDocument([route('GET', '/v1/things', { tag: 'Thigns' })], tags)
  await expect(made).rejects.toThrow('No module declares the tag Thigns.')
})

describe('common responses', () => {
  test('are referenced, and merged with those of the route', async () => {
    const errors = { jwt_required: 'API keys are made with a token.' } as const
    const { '/v1/things': said } = await pathsOf(
      route('GET', '/v1/things', { errors, permission: 'can_edit_config' }),
    )
    expect(at(said, 'get.responses.401')).toEqual({ $ref: '#/components/responses/Unauthorized' })
    const forbidden = at(said, 'get.responses.403')
    expect(at(forbidden, 'description')).toBe('jwt_required, permission_denied')
    expect(Object.keys(asRecord(at(forbidden, 'content.application/json.examples')))).toEqual([
      'jwt_required',
      'permission_denied',
    ])
    expect(at(said, 'get.description')).toBe(
      'Requires the permissions `can_access_api` and `can_edit_config`.',
    )
    expect(at(said, 'get.security')).toEqual([{ bearer: [] }, { apiKey: [] }])
  })

  test('have the Messages shape under /compat', async () => {
    const errors = { upstream_overloaded: 'The model is busy.' } as const
    const { '/compat/v1/messages': said } = await pathsOf(
      route('POST', '/compat/v1/messages', {
        tag: 'Messages',
        errors,
        permission: 'can_access_api',
      }),
    )
    expect(at(said, 'post.responses.401')).toEqual({
      $ref: '#/components/responses/MessagesUnauthorized',
    })
    expect(at(said, 'post.responses.529.content.application/json.schema')).toEqual({
      $ref: '#/components/schemas/MessagesError',
    })
  })

  test('exclude 401 and 403 on public routes', async () => {
    const { '/livez': said } = await pathsOf(route('GET', '/livez'))
    expect(Object.keys(asRecord(at(said, 'get.responses')))).toEqual(['200', '400', '500'])
    expect(at(said, 'get.security')).toEqual([])
    expect(at(said, 'get.description')).toBe('Open to everyone.')
  })
})

test('two errors with one code are two examples', async () => {
  const errors = { unprocessable: ['"name" is required.', '"name" is too long.'] }
  const { '/v1/things': said } = await pathsOf(route('POST', '/v1/things', { errors }))
  const answer = at(said, 'post.responses.422')
  expect(at(answer, 'description')).toBe('unprocessable')
  const examples = asRecord(at(answer, 'content.application/json.examples'))
  expect(Object.keys(examples)).toEqual(['unprocessable', 'unprocessable_2'])
})

test('a route with status 101 is a WebSocket', async () => {
  const socket: Parts = {
    responses: { 101: { description: 'Frames follow.' } },
    permission: 'can_access_api',
  }
  const { '/v1/stt': said } = await pathsOf(route('GET', '/v1/stt', socket))
  expect(at(said, 'get.x-websocket')).toBe(true)
  expect(at(said, 'get.operationId')).toBe('connectStt')
  expect(at(said, 'get.security')).toEqual([{ token: [] }, { bearer: [] }, { apiKey: [] }])
})

test('a stream is documented by one of its events', async () => {
  const content = eventStream(thing, 'event: thing\ndata: {"name":"a"}\n\n')
  const { '/v1/things': said } = await pathsOf(
    route('GET', '/v1/things', { responses: { 200: { description: 'Events.', content } } }),
  )
  expect(at(said, 'get.responses.200.content.text/event-stream')).toEqual({
    schema: { $ref: '#/components/schemas/Thing' },
  })
  // Many events are no example of the schema of one.
  expect(at(said, 'get.responses.200.description')).toBe(
    'Events.\n\n```text\nevent: thing\ndata: {"name":"a"}\n```',
  )
})

test('a union of constants is an enum, as client generators understand', () => {
  const constants = [
    { const: 'a', type: 'string' },
    { const: 'b', type: 'string' },
  ]
  const nothing = { type: 'null' }
  expect(portableSchema({ anyOf: constants, default: 'a' })).toEqual({
    type: 'string',
    enum: ['a', 'b'],
    default: 'a',
  })
  expect(portableSchema({ anyOf: [...constants, nothing] })).toEqual({
    anyOf: [{ type: 'string', enum: ['a', 'b'] }, nothing],
  })
  const mixed = { anyOf: [...constants, { const: 1, type: 'number' }] }
  expect(portableSchema(mixed)).toEqual(mixed)
})

test('a schema comes after those that it refers to', () => {
  const reference = { $ref: '#/components/schemas/Z' }
  expect(Object.keys(inOrderOfReference({ A: { items: reference }, Z: {}, B: {} }))).toEqual([
    'Z',
    'A',
    'B',
  ])
})
