import { type DocumentDecoration, Elysia } from 'elysia'
import type { Endpoint } from '#api/endpoint.ts'
import { errorBody, listenErrorBody, messagesErrorBody } from '#api/error-shapes.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import type { Tags } from '#module.ts'
import { version } from '#package.json'
import { describeEndpoint } from './describe-endpoint.ts'
import { commonResponses, envelopeOf, withCommonResponses } from './error-responses.ts'
import { createSchemaLift } from './lift-schemas.ts'
import { operationId, pascalCase } from './operation-id.ts'
import { documentPath } from './path-parameters.ts'
import { inOrderOfReference } from './portable-schema.ts'

const overview = `
A streaming gateway for language models and speech.

**Credentials.** Send a token of the identity provider or an API key as \`Authorization: Bearer …\`,
or an API key as \`X-Api-Key\`. WebSockets also take either as the query parameter \`token\`. Each
operation names the permission that one of the caller's groups must grant.

**Errors.** Outside of /compat the body is \`{"error": {"message", "type", "param", "code"}}\`; under
/compat it is that of the Messages protocol. Programs should look at \`code\`.

**Request ids.** Every response has the header \`x-request-id\`, which is also in the log.
`.trim()

/** The first tags of the document; the others follow in the order of their modules. */
const leadingTags = ['Models', 'Responses', 'Conversations', 'API keys', 'Speech', 'Files']

/** The OpenAPI document. Throws for undeclared tags and duplicate operation ids or schema names. */
export async function makeDocument(
  endpoints: readonly Endpoint[],
  tags: Tags,
): Promise<JsonObject> {
  const schemas: JsonObject = {}
  const liftSchemasOf = createSchemaLift(schemas)
  liftSchemasOf(
    [{ schema: errorBody }, { schema: listenErrorBody }, { schema: messagesErrorBody }],
    '',
  )
  const listed = new Elysia()
  const places = new Map<string, string>()
  for (const endpoint of endpoints) {
    const path = documentPath(endpoint.path)
    const method = endpoint.method.toLowerCase()
    const operation = completeOperation(endpoint, { method, path })
    const place = `${method} ${path}`
    const { operationId: id } = operation
    const other = places.get(id)
    if (other !== undefined) throw new Error(`${place} and ${other} are both ${id}.`)
    places.set(id, place)
    // Elysia has the types of OpenAPI 3.0; these are schemas of 3.1, as TypeBox makes them.
    const detail = liftSchemasOf(operation, pascalCase([id])) as DocumentDecoration
    listed.route(endpoint.method, path.replace(/\{(\w+)\}/g, ':$1'), () => '', { detail })
  }
  // Loading it takes 0.1 s, which few processes ever need.
  const { swagger } = await import('@elysiajs/swagger')
  const specPath = '/document.json'
  listed.use(swagger({ path: '/page', specPath, excludeStaticFile: false }))
  const response = await listed.handle(new Request(`http://localhost${specPath}`))
  const { paths } = asRecord(await response.json())
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice',
      version,
      description: overview,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: usedTags(endpoints, tags),
    paths,
    components: {
      schemas: inOrderOfReference(schemas),
      responses: commonResponses,
      securitySchemes,
    },
  }
}

function usedTags(endpoints: readonly Endpoint[], tags: Tags) {
  const used = new Set(endpoints.map(({ tag }) => tag))
  const undeclared = [...used].find((name) => tags[name] === undefined)
  if (undeclared !== undefined) throw new Error(`No module declares the tag ${undeclared}.`)
  return [...new Set([...leadingTags, ...Object.keys(tags)])]
    .filter((name) => used.has(name))
    .map((name) => ({ name, description: tags[name] }))
}

/** Any operation accepts the first two; a WebSocket accepts the third as well. */
const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'A token of the identity provider (JWT), or an API key: `sk-svc-v1-…`.',
  },
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Api-Key',
    description: 'An API key. It takes precedence over an `Authorization` header.',
  },
  token: {
    type: 'apiKey',
    in: 'query',
    name: 'token',
    description: 'A token or an API key for a WebSocket, whose client often cannot set headers.',
  },
}

/** The operation of an endpoint with its id, security and common responses. */
function completeOperation(endpoint: Endpoint, { method, path }: { method: string; path: string }) {
  const { description, responses, ...rest } = describeEndpoint(endpoint)
  const { permission } = endpoint
  const isSocket = '101' in responses
  const isPublic = permission === 'public'
  // A public endpoint with a credential of its own documents status 401 itself.
  const isOpenToAll = isPublic && !('401' in responses)
  const access = isOpenToAll ? 'Open to everyone.' : describePermission(permission)
  return {
    ...rest,
    operationId: operationId({ method, path, isSocket }),
    description: [description, access].filter(Boolean).join('\n\n'),
    ...(isSocket ? { 'x-websocket': true } : {}),
    security: isPublic ? publicSecurity(isOpenToAll) : security(isSocket),
    responses: withCommonResponses(responses, { envelope: envelopeOf(path), isPublic }),
  }
}

function security(isSocket: boolean) {
  return [...(isSocket ? [{ token: [] }] : []), { bearer: [] }, { apiKey: [] }]
}

/** Without a credential, or with a bearer token where the operator configured one. */
function publicSecurity(isOpenToAll: boolean) {
  return isOpenToAll ? [] : [{}, { bearer: [] }]
}

function describePermission(permission: Endpoint['permission']): string {
  if (permission === 'public') return ''
  if (permission === 'can_access_api') return 'Requires the permission `can_access_api`.'
  return `Requires the permissions \`can_access_api\` and \`${permission}\`.`
}
